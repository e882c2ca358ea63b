"""Lesson 17: what is measured on a trained translator beside its exercises, and the claims.

First the measurements, then the figures and tables of the lesson, one call each. They read
data/interpretability.json, which `make bench-interpretability` measures on the translator that
ships; `python -m benchmarks.interpretability --only PART` measures one part again.
"""

import functools
import itertools
import json
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy
import torch
from IPython.display import HTML
from torch import Tensor, nn
from torch.nn import functional as F

from attention.provided import demand
from attention.provided.data.number_words import alignment, exchanged, kinds
from attention.provided.data.numbers import Batch, Corpus, in_words
from attention.provided.data.tokens import EOS, PAD
from attention.provided.figures import plots
from attention.provided.figures.explorer import Sentence, explorer
from attention.provided.files import ROOT
from attention.provided.measuring.other_weights import largest_change
from attention.provided.models.attention_weights import Look, look_at, watch_attention
from attention.provided.models.rearranged_attention import rearranged
from attention.provided.training_steps import fewer
from attention.sequence_to_sequence import shift_right
from attention.transformer import masks_from_tokens

LONGEST = 100  # letters that are written
Patching = Callable[..., Tensor]  # the lesson's ActivationPatching, made of a model


def look(model: nn.Module, batch: Batch) -> dict[str, Look]:
    """Run a translator once, and return what every attention in it did, by name."""
    return look_at(model, batch.source, batch.target)


def _called(name: str) -> str:
    """What is said of an attention, in place of its name in the module."""
    stack, _, layer, kind = name.split(".")
    which = "cross-attention" if "cross" in kind else f"{stack}'s self-attention"
    return f"{which}, layer {layer}"


def role_scores(weights: Tensor, role: Tensor) -> Tensor:
    """The share of its weight that each head puts where a role would look.

    weights  (B, H, T_q, T_k)
    role     bool (B, T_q, T_k)  True = a head with this role would look there
    returns  (H,)  mean over all queries for which the role has a key at all

    Raises ValueError for a role that is not bool.

    >>> previous = torch.tensor([[[False, False], [True, False]]])
    >>> role_scores(torch.tensor([[[[1.0, 0.0], [0.7, 0.3]]]]), previous)
    tensor([0.7000])
    """
    demand.masks(role=role)
    asked = role.any(dim=-1)  # (B, T_q)
    looked: Tensor = (weights * role.unsqueeze(1)).sum(dim=-1)  # (B, H, T_q)
    return looked.sum(dim=(0, 2)) / asked.sum()


def offset_role(mask: Tensor, offset: int) -> Tensor:
    """Where a head looks that looks so many positions further: -1 is the previous token.

    mask  bool (B, T_q, T_q)  True = may attend; so is what is returned

    Raises ValueError for a mask that is not bool.
    """
    demand.masks(mask=mask)
    places = torch.arange(mask.shape[-1])
    return (places[:, None] + offset == places) & mask


def uniform(mask: Tensor) -> Tensor:
    """Equal weights where a mask (B, T_q, T_k) allows it, as of one head: (B, 1, T_q, T_k).

    Raises ValueError for a mask that is not bool.
    """
    demand.masks(mask=mask)
    return (mask / mask.sum(dim=-1, keepdim=True).clamp(min=1)).unsqueeze(1)


def aligned_role(pairs: Sequence[Any], batch: Batch, first: bool) -> Tensor:
    """Where a head looks that looks at the word which is being written: bool (B, T_q, T_k).

    first  True: only at the first letters of a word; False: only at the others
    """
    role = torch.zeros(*batch.target.shape, batch.source.shape[1], dtype=torch.bool)
    for b, (_, source, target) in enumerate(pairs):
        words = alignment(source, target)
        for t, word in enumerate(words):
            if word is not None and first == (t == 0 or words[t - 1] != word):
                role[b, t, word] = True
    return role


@functools.cache
def stored() -> dict[str, Any]:
    """What `make bench-interpretability` measured, by part."""
    text = (ROOT / "data" / "interpretability.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def held_out(corpus: Corpus, count: int = 40) -> tuple[list[Any], Batch]:
    """Held-out numbers, always the same: pairs of (number, English, German), and their batch."""
    pairs = random.Random(0).sample(corpus.test, fewer(count, 8))
    return pairs, corpus.batch(pairs)


def numbers(corpus: Corpus, *wanted: int) -> Batch:
    """Numbers as a batch of the corpus: English words in, German letters out."""
    return corpus.batch([(n, in_words(n, "en"), in_words(n, "de")) for n in wanted])


def _labels(number: int) -> tuple[list[str], list[str]]:
    """The letters that are to be written, and the words that are read."""
    return [*in_words(number, "de"), "EOS"], [*in_words(number, "en").split(), "EOS"]


def _beside(number: int, maps: Mapping[str, Tensor]) -> Any:
    """Draw maps (T_q, T_k) of a number side by side: letters down, words across.

    The first shows weights, from 0 to 1; the scale of another ends at its largest number.
    """
    letters, words = _labels(number)
    axes = numpy.atleast_1d(plots.panels(columns=len(maps), width=4.6, height=4.8, share=False))
    for ax, (title, values) in zip(axes, maps.items(), strict=True):
        plots.heatmap(values, ax, title, letters, words, faint=ax is not axes[0])
        ax.tick_params(axis="x", rotation=60)
        ax.set(xlabel="words", ylabel="letter to be written")
    return axes


def first_map(model: nn.Module, corpus: Corpus, number: int = 231) -> Tensor:
    """Draw where the first cross-attention looks, the mean of its heads: (T_q, T_k).

    Prints which letter would get most probability, after the true letters so far, if every
    cross-attention gave its weights to other words than its own. Nothing else is changed.
    """
    batch, (letters, _) = numbers(corpus, number), _labels(number)
    weights = look(model, batch)["decoder.layers.0.cross_attention"].weights[0].mean(dim=0)
    with rearranged(model, batch.source, "shuffled"), torch.no_grad():
        guessed = model(batch.source, batch.target).argmax(dim=-1)[0].tolist()
    written = [corpus.target_vocabulary.tokens[token] for token in guessed]
    for name, row in (("true letters", letters), ("shuffled weights", written)):
        print(f"{name:<18}", *(f"{one if len(one) == 1 else 'EOS':^3}" for one in row), sep="")
    _beside(number, {f"{number}: weights of layer 0": weights})
    return weights


def shuffled_weights() -> dict[str, list[dict[str, float]]]:
    """Print the share of right letters in 200 held-out numbers, given the true ones before.

    Changed: where the cross-attentions' weights go, to their own words, to others (three
    shuffles), or equally to all. The model and the sentences stay the same.
    """
    found: dict[str, list[dict[str, float]]] = stored()["rearranged"]
    parts = ("whole numbers", "first letters", "letters inside")
    print(f"{'weights':<12}", *(f"{part:>16}" for part in parts))
    for name, row in ((name, row) for name, rows in found.items() for row in rows):
        print(f"{name:<12}", *(f"{row[part]:16.3f}" for part in parts))
    return found


def _maps(model: nn.Module, corpus: Corpus, number: int) -> Sentence:
    """Every map of a number, with what its queries and keys are called."""
    looks, (letters, words) = look(model, numbers(corpus, number)), _labels(number)
    read, labels = ["BOS", *letters[:-1]], {}
    for name in looks:
        cross = (letters, words) if "cross" in name else (read, read)
        labels[_called(name)] = (words, words) if name.startswith("encoder") else cross
    maps = {_called(name): one.weights[0] for name, one in looks.items()}
    return Sentence(f"{number}: {in_words(number, 'en')}", maps, labels)


def explore_maps(model: nn.Module, corpus: Corpus) -> HTML:
    """A page to choose from: every head of every attention, for 231 and two held-out numbers."""
    chosen = [231, *(pair[0] for pair in held_out(corpus)[0][:2])]
    return explorer([_maps(model, corpus, number) for number in chosen])


def draw_roles(model: nn.Module, pairs: Sequence[Any], batch: Batch) -> None:
    """Draw how often the largest weight of each head is where a role looks; a tick: by chance.

    Left the self-attentions, by the neighbour. Right the cross-attentions, at the word that is
    being written: each head is its number.
    """
    left, right = plots.panels(1, 2, width=4.8, height=3.4, share=False)
    source, target = batch.source != PAD, batch.target != PAD
    rows: dict[Any, list[str]] = {left: [], right: []}
    for name, (weights, _) in look(model, batch).items():
        stack, _, layer, kind = name.split(".")
        if "cross" in kind:
            mask, ax = target.unsqueeze(2) & source.unsqueeze(1), right
            roles = {
                f"layer {layer}, {which} letters": aligned_role(pairs, batch, which == "first")
                for which in ("first", "other")
            }
        else:
            real, ax = source if stack == "encoder" else target, left
            mask = real.unsqueeze(1) & real.unsqueeze(2)
            mask = mask.tril() if stack == "decoder" else mask
            roles = {
                f"{stack} {layer}, {which}": offset_role(mask, offset)
                for which, offset in (("token before", -1), ("token after", 1))
            }
        for label, role in roles.items():
            if role.any():
                _draw_role(ax, len(rows[ax]), role, mask, weights)
                rows[ax].append(label)
    titles = {left: "self-attention: a neighbour", right: "cross-attention: the word being written"}
    for ax, title in titles.items():
        ax.set_yticks(range(len(rows[ax])), rows[ax])
        ax.set(title=title, xlim=(0, 1.04), ylim=(len(rows[ax]) - 0.5, -0.5))
        ax.set(xlabel="share of queries with the largest weight there")
    left.axvline(0.9, color=plots.GREY, linestyle="--", linewidth=1, label="“positional”: 0.9")
    left.plot([], [], "o", color=plots.BLUE, markersize=5, label="a head")
    left.plot([], [], "|", color=plots.BLACK, markersize=9, label="by chance")
    left.legend(fontsize=9, loc="upper right", bbox_to_anchor=(0.88, 0.8))


def _draw_role(ax: Any, place: int, role: Tensor, mask: Tensor, weights: Tensor) -> None:
    chance = role_scores(uniform(mask), role).item()
    ax.plot([chance] * 2, [place - 0.4, place + 0.4], color=plots.BLACK, linewidth=1.5)
    largest = F.one_hot(weights.argmax(-1), weights.shape[-1]).double()
    neighbour = role.shape[-1] == role.shape[-2]
    for head, share in enumerate(role_scores(largest, role).tolist()):
        marker, size, lower = ("o", 5, 0) if neighbour else (f"${head}$", 7, 0.2 * (head - 1.5))
        ax.plot(share, place + lower, marker=marker, color=plots.BLUE, markersize=size, mew=0.4)


def attention_and_losses(weights: Tensor, lost: Tensor, number: int = 231) -> int:
    """Draw a map beside what each letter loses without each word.

    weights, lost  (T_q, T_k); lost in nats
    returns        how many letters lose more than one nat without "thirty"
    """
    _beside(number, {"weights of layer 0": weights, "nats lost without the word": lost})
    return int((lost[:-1, _labels(number)[1].index("thirty")] > 1).sum())


def explanations() -> dict[str, list[float]]:
    """Draw how well four measures order the words as leave-one-out does, for 200 numbers.

    Kendall's τ: mean over the letters of a sentence, then over sentences, and its 95 % bootstrap
    interval. Sentences and losses are the same in all rows; random numbers are the control.
    """
    found: dict[str, list[float]] = stored()["explanation"]
    names = sorted((name for name in found if "less" not in name), key=lambda name: -found[name][0])
    ax = plots.panels(width=6.5, height=2.8)
    for height, (mean, *ends) in enumerate(found[name] for name in names):
        ax.plot(ends, [height, height], color=plots.BLUE, linewidth=5, alpha=0.4)
        ax.plot(mean, height, "o", color=plots.BLUE)
        ax.annotate(f"{mean:.3f}", (mean, height), (0, 7), textcoords="offset points", ha="center")
    ax.set_yticks(range(len(names)), names)
    ax.set(
        xlabel="Kendall's τ with leave-one-out, mean per sentence", ylim=(len(names) - 0.5, -0.7)
    )
    difference = "attention less gradient · input"
    mean, low, high = found[difference]
    print(f"{difference}: τ {mean:+.3f}   [{low:+.3f}, {high:+.3f}]")
    return found


def written(
    patching: Patching, corpus: Corpus, number: int, other: int, places: Sequence[int]
) -> str:
    """Write a number greedily, while the decoder is given some vectors of another number."""
    source, theirs = (numbers(corpus, n).source for n in (number, other))
    chosen = torch.zeros(source.shape, dtype=torch.bool)
    chosen[0, list(places)] = True
    letters = list[int]()
    while len(letters) < LONGEST and EOS not in letters:
        target = torch.tensor([[*letters, EOS]])  # whatever stands last: it is asked for
        letters.append(int(patching(source, target, theirs, chosen)[0, -1].argmax()))
    return "".join(corpus.target_vocabulary.decode(letters))


def patch_words(
    patching: Patching, corpus: Corpus, number: int = 931, other: int = 139
) -> dict[str, int | str]:
    """Replace the vector of each word by the other number's: what is then written, by word.

    Draws how much of its probability each letter of the number loses, given the true letters
    before it. What is no number of the corpus is returned as text. Both numbers must have equally
    many English words.
    """
    batch, theirs = numbers(corpus, number), numbers(corpus, other).source
    letters, words = _labels(number)
    known = {text: n for n, _, text in corpus.train + corpus.test}
    p, found = [], dict[str, int | str]()
    for place, word in enumerate([*words, "none"]):
        chosen = torch.arange(len(words)).unsqueeze(0) == place
        all_p = patching(batch.source, batch.target, theirs, chosen)
        p.append(all_p.gather(2, batch.target.unsqueeze(2))[0, :, 0])
        text = written(patching, corpus, number, other, [place][: place < len(words)])
        found[word] = known.get(text, text)
        print(f"{word:<8} replaced: {text}")
    others = enumerate(zip(words, _labels(other)[1], strict=True))
    differ = [place for place, (one, its) in others if one != its]
    print("all that differ:  ", written(patching, corpus, number, other, differ))
    lost = (p[-1] - torch.stack(p[:-1])).T  # (T_q, T_k)
    ax = plots.panels(width=4.6, height=4.8)
    plots.heatmap(lost, ax, f"{number}, one vector of {other}", letters, words, colorbar=False)
    ax.figure.colorbar(ax.images[0], ax=ax, label="probability lost", ticks=[0, 0.5, 1])
    ax.set(xlabel="word whose vector is replaced", ylabel="letter to be written")
    return found


def patch_many(
    patching: Patching, corpus: Corpus, count: int = 100
) -> dict[str, list[tuple[bool, bool]]]:
    """Replace one vector at a time in pairs of held-out numbers with the same kinds of words.

    returns  by what was replaced, for each time: whether the number is still written as it was,
             and whether it is written with this word of the other one. Both are printed
    """
    draw, alike = random.Random(0), defaultdict[tuple[str, ...], list[int]](list)
    for n, _, _ in corpus.test:
        alike[kinds(n)].append(n)
    several = [group for which, group in alike.items() if len(which) > 2 and len(group) > 1]
    found = defaultdict[str, list[tuple[bool, bool]]](list)
    for _ in range(fewer(count, 4)):
        number, other = draw.sample(draw.choice(several), 2)
        words, others = _labels(number)[1], _labels(other)[1]
        expected = [exchanged(number, other, [place]) for place in range(len(words))]
        source, theirs = (numbers(corpus, *[n] * len(words)).source for n in (number, other))
        right = []
        for wanted in ([number] * len(words), expected):
            target = numbers(corpus, *wanted).target
            p = patching(source, target, theirs, torch.eye(len(words)) == 1)
            right.append(((p.argmax(-1) == target) | (target == PAD)).all(dim=1).tolist())
        for word, its, *both in zip(words, others, *right, strict=True):
            which = "another word" if word != its else "the same word"
            found[word if word == "EOS" else which].append((both[0], both[1]))
    for which, rows in found.items():
        own, new = (sum(column) for column in zip(*rows, strict=True))
        print(
            f"{which:<13} {len(rows)} times: {own} numbers written as before, "
            f"{new} with the other's word"
        )
    return found


def _moved(model: Any, rows: Sequence[int]) -> Patching:
    """As an ActivationPatching, but the decoder gets the encoder's own vectors, in these rows."""

    @torch.no_grad()
    def scores(source: Tensor, target: Tensor, *_: Any) -> Tensor:
        mask, causal = masks_from_tokens(source, shift_right(target))
        memory = model.encode(source, mask)[:, list(rows)]
        found: Tensor = model.decode(shift_right(target), memory, causal, mask)
        return found

    return scores


def move_vectors(model: nn.Module, corpus: Corpus, number: int = 931) -> dict[str, int]:
    """Give the decoder a number's vectors in other places: what is then written.

    Then for all numbers of the same kinds of words whose first and last digit differ.
    returns  how many of them are written as they were, with the vectors as they are and exchanged,
             and how many without their last digit, with the first one's vector in its place, too
    """
    orders = {"as they are": [0, 1, 2, 3, 4], "first and last exchanged": [3, 1, 2, 0, 4]}
    orders |= {"the first in both places": [0, 1, 2, 0, 4], "the last in both": [3, 1, 2, 3, 4]}
    for name, rows in orders.items():
        print(f"{name:<25} {written(_moved(model, rows), corpus, number, number, [])}")
    every = itertools.product(range(1, 10), range(20, 100, 10), range(1, 10))
    several = [100 * first + tens + last for first, tens, last in every if first != last]
    several = several[: fewer(len(several), 20)]
    source, right = numbers(corpus, *several).source, {}
    for name, rows in list(orders.items())[:3]:
        dropped = name == "the first in both places"
        target = numbers(corpus, *(n - n % 10 if dropped else n for n in several)).target
        best = _moved(model, rows)(source, target).argmax(-1)
        right[name] = int(((best == target) | (target == PAD)).all(dim=1).sum())
        end = "written without the last digit" if dropped else "written as it was"
        print(f"{name:<25} {end}: {right[name]} of {len(several)} such numbers")
    return right


def _longest(model: nn.Module, corpus: Corpus) -> dict[str, Look]:
    """What every attention did with the longest held-out number."""
    return look(model, corpus.batch([max(corpus.test, key=lambda pair: len(pair[2]))]))


def null_spaces(null_space_dimension: Any, model: nn.Module, corpus: Corpus) -> str:
    """Print the dimension of each head's null space for the longest held-out number.

    returns  which kinds of attention have one: of encoder, decoder and cross
    """
    found = dict[str, None]()
    for name, (_, values) in _longest(model, corpus).items():
        free, T = null_space_dimension(values[0]).tolist(), values.shape[2]
        print(f"{_called(name):<34} {T:2d} keys   free directions of the four heads {free}")
        if any(free):
            found["cross" if "cross" in name else name.split(".")[0]] = None
    share = stored()["null space"]["targets of more than 33 tokens"]
    print(f"held-out numbers of more than 33 letters, EOS among them: {share:.0%}")
    return " and ".join(found)


def last_row(model: nn.Module, corpus: Corpus) -> tuple[Tensor, Tensor]:
    """The last row of weights, (T,), of a decoder's head for the longest number; values (T, d)."""
    one = _longest(model, corpus)["decoder.layers.0.attention"]
    return one.weights[0, 1, -1], one.values[0, 1]


def draw_rows(weights: Tensor, values: Tensor, other: Tensor) -> None:
    """Draw the row with the same output that `largest_change` finds, and the row of the model.

    Printed: both it and a learner's row.

    weights, other  (T,)
    values          (T, d)
    """
    searched = largest_change(weights, values)
    for label, row in {"random direction": other, "searched": searched}.items():
        moved, error = (row - weights).abs().sum() / 2, ((row - weights) @ values).abs().max()
        print(f"{label:<17} {moved:.0%} moved   smallest weight {row.min():.1e}", end="   ")
        print(f"sum {row.sum():.12f}   output off by {error:.0e}")
    ax = plots.panels(width=7.5, height=2.2)
    ax.bar(range(len(weights)), searched, color=plots.SKY, label="the farthest row")
    ax.step(range(len(weights)), weights, color=plots.BLACK, lw=1, where="mid", label="the model's")
    ax.set(xlabel="position that the decoder has read", ylabel="weight")
    ax.set(title="two rows of weights, one output")
    plots.legend(ax, fontsize=9, loc="upper center")


def movable_weight() -> dict[str, Any]:
    """Draw how much weight can be moved in the last rows of 8 heads for 25 long numbers.

    The best of 20 random directions, and `largest_change`; the output of the head stays.
    """
    found: dict[str, Any] = stored()["null space"]
    ax = plots.panels(width=6.5, height=2.6)
    for name, colour in (("random", plots.GREY), ("search", plots.BLUE)):
        ax.hist(found[name], bins=26, range=(0, 0.6), color=colour, alpha=0.7, label=name)
        mean, largest = found[f"{name}, mean and largest"]
        print(f"{name:<7} mean {mean:.3f}   largest {largest:.3f}")
    plots.legend(ax)
    ax.set(xlabel="share of the weight that can be moved", ylabel="heads and sentences")
    print(
        f"largest error of the output of {found['rows']} rows:",
        found["largest error of the output"],
    )
    return found


def pruned_heads() -> int:
    """Draw the share of right numbers as heads are removed, in three orders, for 500 numbers.

    Within one kind of attention (8 heads) or among all 24: at random (five draws), least important
    first, or greedy, always the head whose loss costs least. Orders come from other sentences.
    returns  how many of the encoder's heads can go, least important first, while 99 % stay right
    """
    print("heads removed while 99 % of the numbers stay right")
    axes, few = plots.panels(2, 2, width=3.7, height=2.6, share=False), {}
    styles = {"at random": (plots.GREY, 0.6), "least important first": (plots.VERMILION, 1)}
    styles |= {"greedy": (plots.BLUE, 1)}
    titles = {"encoder": "encoder: 8 heads", "decoder": "decoder's self-attention: 8 heads"}
    titles |= {"cross": "cross-attention: 8 heads", "all": "all 24 heads"}
    for ax, (group, curves) in zip(axes.flat, stored()["pruning"]["curves"].items(), strict=True):
        for name, (colour, alpha) in styles.items():
            for number, curve in enumerate(curves[name]):
                label = name if number == 0 else None
                ax.plot(curve, ".-", color=colour, alpha=alpha, linewidth=1.3, label=label)
            few[group, name] = [_still_right(curve) for curve in curves[name]]
        told = (f"{name} {' '.join(map(str, few[group, name]))}" for name in styles)
        print(f"{titles[group]:<33} {'   '.join(told)}")
        ax.set(title=titles[group], xlabel="heads removed", ylim=(-0.04, 1.04))
        ax.set_ylabel("numbers right")
    plots.legend(axes[0, 0], fontsize=8, loc="lower left")
    return few["encoder", "least important first"][0]


def _still_right(curve: Sequence[float]) -> int:
    """How many heads can go before the share falls below 0.99."""
    return min([n for n, share in enumerate(curve) if share < 0.99], default=len(curve)) - 1


def turn_gates(model: nn.Module, batch: Batch, importance: Mapping[str, Tensor]) -> None:
    """Draw the loss per number as one gate goes from 1 to 0; all other gates stay 1.

    The head of the decoder's last self-attention with the smallest importance, and the one that
    greedy search removes first.
    """
    name = "decoder.layers.1.attention"
    first_off = stored()["pruning"]["first off"]
    ax, steps = plots.panels(width=6.5, height=2.8), [n / 5 for n in range(6)]
    least, greedy = ((name, int(importance[name].argmin())), tuple(first_off))
    curves = {"least important": (least, plots.VERMILION)}
    curves["first to go by greedy search"] = (greedy, plots.BLUE)
    for label, ((part, head), colour) in curves.items():
        losses = []
        for step in steps:
            gates = torch.ones(4).double()
            gates[head] = step
            with watch_attention(model, {part: gates}), torch.no_grad():
                scores = model(batch.source, batch.target).flatten(0, 1)
            answers = batch.target.flatten()
            loss = F.cross_entropy(scores, answers, ignore_index=PAD, reduction="sum")
            losses.append(loss.item() / len(batch.source))
        label = f"head {head}, {label}: importance {importance[part][head]:.3f}"
        ax.plot(steps, losses, "o-", color=colour, label=label)
    ax.set(xlabel="gate: 0 removes the head, 1 keeps it", ylabel="loss per number (nats)")
    ax.set(title=_called(name))
    plots.legend(ax, fontsize=9)


def nearest_inputs(identifiability: Any, model: Any, batch: Batch) -> float:
    """Print the share of tokens whose hidden vector is nearest to their own input, by layer.

    200 held-out numbers; the trained model beside three untrained ones of the same sizes.
    returns  the share in a batch, after all layers, by the lesson's token_identifiability
    """
    rows, ways = stored()["identifiability"], {"cosine": "by angle", "distance": "by distance"}
    ways["change only"] = "the change alone"
    for layer, (way, told) in itertools.product((0, 1), ways.items()):
        name = f"layer {layer}, {way}"
        controls = " ".join(f"{control[name]:.3f}" for control in rows["untrained"])
        trained = rows["trained"][0][name]
        print(f"layer {layer}, {told:<17} trained {trained:.3f}   untrained {controls}")
    mask, x = batch.source != PAD, model.embed(batch.source, model.source_embedding)
    nearest = identifiability(model.encoder(x, mask.unsqueeze(1)), x, mask)
    return float(nearest.sum() / mask.sum())


def probes() -> None:
    """Draw how often a linear classifier reads a token from a hidden vector, by layer.

    Trained on 400 numbers, asked about others; the trained model beside three untrained ones.
    """
    found, asked = stored()["probes"], ("the token itself", "the token before")
    axes = plots.panels(columns=2, width=3.4, height=2.6)
    for ax, question in zip(axes, asked, strict=True):
        layers = [n for n in found["trained"][0] if n.startswith(question) and "most" not in n]
        for name, colour, size in (("trained", plots.BLUE, 9), ("untrained", plots.GREY, 4)):
            for number, row in enumerate(found[name]):
                style = {"color": colour, "markersize": size, "linewidth": size / 4}
                right, label = [row[layer] for layer in layers], None if number else name
                ax.plot(right, "o-", label=label, **style)
        most = found["trained"][0][f"{question}, most frequent"]
        ax.axhline(most, color=plots.BLACK, linewidth=1, ls="--", label="most frequent answer")
        ax.set_xticks(range(len(layers)), [layer.split(", ")[1] for layer in layers], rotation=45)
        ax.set(title=question, ylim=(0, 1.04))
    plots.legend(axes[0], fontsize=8, loc="center right", bbox_to_anchor=(1, 0.55))
    axes[0].set(ylabel="read correctly")


def attributions(attribution: Any, model: Any, corpus: Corpus, number: int = 231) -> None:
    """Draw the share of each input token in each hidden vector, after one and two layers.

    attribution  the lesson's HiddenTokenAttribution
    Prints the mean own share over 40 sentences of 8 tokens, trained and untrained.
    """
    x = model.embed(numbers(corpus, number).source, model.source_embedding)
    axes, words = plots.panels(columns=2, width=3.6, height=3.0), _labels(number)[1]
    for depth, ax in enumerate(axes, start=1):
        shares = attribution(nn.Sequential(*model.encoder.layers[:depth]))(x)[0]
        after = f"after layer {depth - 1}"
        plots.heatmap(shares, ax, after, words, words, numbers=True, colorbar=False)
        ax.set(xlabel="input tokens", ylabel="hidden vectors")
        ax.tick_params(axis="x", rotation=30)
    for name in ("trained", "untrained"):
        rows = stored()["attribution"][name]
        for depth in (1, 2):
            own = " ".join(f"{row[f'depth {depth}'][0]:.3f}" for row in rows)
            largest = " ".join(f"{row[f'depth {depth}, own is largest']:.2f}" for row in rows)
            print(f"{name:<10} after layer {depth - 1}: own share {own:<17}  is largest {largest}")
