"""Lesson 17: what is measured on a trained translator beside its exercises, and the claims.

`make bench-interpretability` measures it on the translator that ships.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy
import torch
from torch import Tensor, nn

from attention.experiments.recorded import Claim
from attention.multi_head_attention import MultiHeadAttention
from attention.provided import demand
from attention.provided.data.number_words import alignment, exchanged, kinds
from attention.provided.data.numbers import Batch, Corpus, in_words
from attention.provided.data.tokens import EOS, PAD
from attention.provided.figures import plots
from attention.provided.figures.explorer import Sentence
from attention.provided.models.attention_weights import watch_attention
from attention.sequence_to_sequence import shift_right
from attention.transformer import masks_from_tokens

HEADS = (  # whose maps the lesson draws: title, name of the attention, head
    ("encoder, layer 1, head 2", "encoder.layers.1.attention", 2),
    ("decoder, layer 1, head 0", "decoder.layers.1.attention", 0),
    ("cross, layer 0, head 0", "decoder.layers.0.cross_attention", 0),
    ("cross, layer 0, head 3", "decoder.layers.0.cross_attention", 3),
)
LONGEST = 100  # letters that are written
Patching = Callable[..., Tensor]  # the lesson's ActivationPatching, made of a model


class Look(NamedTuple):
    """What one attention did: weights (B, H, T_q, T_k), and the values (B, H, T_k, d_head)."""

    weights: Tensor
    values: Tensor


def look(model: nn.Module, batch: Batch) -> dict[str, Look]:
    """Run a translator once, and return what every attention in it did, by name."""
    values: dict[str, Tensor] = {}
    hooks = []

    def keep(name: str, part: MultiHeadAttention) -> Callable[..., None]:
        def hook(_: object, args: Any, result: object) -> None:
            split = part.W_v(args[2]).unflatten(-1, (part.n_heads, part.d_head))
            values[name] = split.transpose(1, 2)

        return hook

    for name, part in attentions(model).items():
        hooks.append(part.register_forward_hook(keep(name, part)))
    try:
        with watch_attention(model) as weights, torch.no_grad():
            model(batch.source, batch.target)
    finally:
        for hook in hooks:
            hook.remove()
    return {name: Look(weights[name], values[name]) for name in weights}


def attentions(model: nn.Module) -> dict[str, MultiHeadAttention]:
    """The attentions of a model, by name."""
    return {n: m for n, m in model.named_modules() if isinstance(m, MultiHeadAttention)}


def mean_attention(looks: Mapping[str, Look], ending: str) -> Tensor:
    """Mean over layers and heads of the weights whose name ends so: (B, T_q, T_k)."""
    chosen = [one.weights for name, one in looks.items() if name.endswith(ending)]
    return torch.stack(chosen).mean(dim=(0, 2))


def gradients(model: Any, batch: Batch) -> tuple[Tensor, Tensor]:
    """Derivatives of each target token's log-probability by each source token's vector.

    returns  two (B, T_q, T_k): |gradient · vector|, and the gradient's length
    """
    seen, read_mask = masks_from_tokens(batch.source, shift_right(batch.target))
    x = model.embed(batch.source, model.source_embedding).detach().requires_grad_()
    memory = model.encoder(x, seen)
    logits = model.decode(shift_right(batch.target), memory, read_mask, seen)
    log_p = logits.log_softmax(-1).gather(2, batch.target.unsqueeze(2)).squeeze(2)
    products, norms = [], []
    for one in log_p.unbind(dim=1):  # a sentence depends on itself alone
        (gradient,) = torch.autograd.grad(one.sum(), x, retain_graph=True)
        products.append((gradient * x).sum(-1).abs())
        norms.append(gradient.norm(dim=-1))
    return torch.stack(products, 1).detach(), torch.stack(norms, 1)


@torch.no_grad()
def prefix_effects(model: Any, batch: Batch) -> Tensor:
    """What each letter read loses if an earlier one may not be looked at: (B, T_q, T_q).

    Entry (t, j): log p of target token t, less what it is when nobody but itself sees what the
    decoder read at position j. Above the diagonal it is 0.
    """
    seen, read_mask = masks_from_tokens(batch.source, shift_right(batch.target))
    memory = model.encode(batch.source, seen)
    T, effects = batch.target.shape[1], []

    def log_p(mask: Tensor) -> Tensor:
        logits = model.decode(shift_right(batch.target), memory, mask, seen)
        scores: Tensor = logits.log_softmax(-1).gather(2, batch.target.unsqueeze(2)).squeeze(2)
        return scores

    whole = log_p(read_mask)
    for j in range(T):
        unread = read_mask.clone()
        unread[:, :, j] = False
        unread[:, j, j] = True
        effects.append(whole - log_p(unread))
    return torch.stack(effects, dim=-1)


def agreement(a: Tensor, b: Tensor, lengths: Sequence[Sequence[int]]) -> list[float]:
    """Kendall's τ between the rows of two (B, T_q, T_k), mean over the rows of each sentence.

    lengths  for each sentence, how many keys count in each of its rows; rows of fewer than 2, and
             rows in which all are equal, do not count
    """
    found = []
    for x, y, counts in zip(a, b, lengths, strict=True):
        taus = [tau(x[t, :n], y[t, :n]) for t, n in enumerate(counts) if n > 1]
        found.append(float(numpy.nanmean(taus)))
    return found


def tau(x: Tensor, y: Tensor) -> float:
    """Kendall's τ (b, for ties) of two rows (T,): the pairs they agree on, less the others.

    >>> tau(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([10.0, 30.0, 20.0]))
    0.3333333333333333
    """
    one, other = ((row[:, None] - row).sign().double() for row in (x, y))
    length = (one.square().sum() * other.square().sum()).sqrt()
    return ((one * other).sum() / length).item()


def bootstrap(numbers: Sequence[float], draws: int = 2000, seed: int = 0) -> tuple[float, ...]:
    """Mean of some numbers, and the bounds of its 95 % interval: drawn again, with replacement.

    Raises ValueError if there are no numbers, or no draws.
    """
    demand.counts(numbers=len(numbers), draws=draws)
    values = numpy.asarray(numbers)
    places = numpy.random.default_rng(seed).integers(len(values), size=(draws, len(values)))
    low, high = numpy.quantile(values[places].mean(axis=1), (0.025, 0.975))
    return float(values.mean()), float(low), float(high)


def largest_change(
    weights: Tensor, values: Tensor, starts: int = 4, rounds: int = 8, seed: int = 0
) -> Tensor:
    """Search for the weights farthest from some, with the same output and sum, none negative.

    weights  (T,) float64
    values   (T, d)
    returns  (T,)  the best found; to find the best of all takes much longer

    From a random direction on: a linear programme finds the weights farthest in a direction, and
    the next direction is the signs of their change. Each round gets at least as far as the last.
    """
    from scipy.optimize import linprog  # slow to import

    both = torch.cat([values, torch.ones_like(values[:, :1])], dim=1).numpy()
    old, best = weights.numpy(), weights.numpy()
    random = numpy.random.default_rng(seed)
    for _ in range(starts):
        direction = random.choice([-1.0, 1.0], size=len(old))
        for _ in range(rounds):
            found = linprog(-direction, A_eq=both.T, b_eq=old @ both, bounds=(0, 1))
            if not found.success:
                break
            if abs(found.x - old).sum() > abs(best - old).sum():
                best = found.x
            signs = numpy.where(found.x >= old, 1.0, -1.0)
            if (signs == direction).all():
                break
            direction = signs
    return torch.from_numpy(numpy.ascontiguousarray(best))


@contextmanager
def rearranged(model: nn.Module, source: Tensor, how: str, seed: int = 0) -> Iterator[None]:
    """Let every cross-attention give its weights to other tokens, or the same to all.

    how  "shuffled": each sentence's values change places, so each weight meets another token's,
         never its own;
         "uniform": every value becomes the mean of the real ones, as if all weights were equal
    """
    draw, real = torch.Generator().manual_seed(seed), source != PAD
    order = torch.stack([_shuffled(row, draw) for row in real])  # (B, T_k)

    def hook(_: object, args: Any, kwargs: Any) -> Any:
        query, key, value, *others = args
        if how == "uniform":
            mean = (value * real.unsqueeze(2)).sum(1, keepdim=True) / real.sum(1)[:, None, None]
            value = mean.expand_as(value)
        else:
            value = value.gather(1, order.unsqueeze(2).expand_as(value))
        return (query, key, value, *others), kwargs

    hooks = [
        part.register_forward_pre_hook(hook, with_kwargs=True)
        for name, part in attentions(model).items()
        if name.endswith("cross_attention")
    ]
    try:
        yield
    finally:
        for one in hooks:
            one.remove()


def _shuffled(real: Tensor, draw: torch.Generator) -> Tensor:
    """A random order of the real places in which none stays where it was; the others stay."""
    order, places = torch.arange(len(real)), real.nonzero().squeeze(1)
    ring = places[torch.randperm(len(places), generator=draw)]  # each takes the place of the next
    order[ring] = ring.roll(1)
    return order


@torch.no_grad()
def right_letters(model: nn.Module, batch: Batch) -> Tensor:
    """Which target tokens have the largest score, given the true ones before: bool (B, T_q)."""
    right: Tensor = (model(batch.source, batch.target).argmax(-1) == batch.target) | (
        batch.target == PAD
    )
    return right


Head = tuple[str, int]  # name of an attention, number of a head


def exact_without(model: nn.Module, batch: Batch, off: Sequence[Head]) -> float:
    """Share of sentences of which every token is right, given the true ones before, without heads.

    Greedy translation gives the same sentence exactly where this is so.
    """
    parts = attentions(model)
    gates = {name: torch.ones(part.n_heads) for name, part in parts.items()}
    for name, head in off:
        gates[name][head] = 0.0
    with watch_attention(model, gates):
        right = right_letters(model, batch)
    return right.all(dim=1).double().mean().item()


def offset_role(mask: Tensor, offset: int) -> Tensor:
    """Where a head looks that looks so many positions further: -1 is the previous token.

    mask     bool (B, T_q, T_q)  True = may attend
    returns  bool (B, T_q, T_q)

    Raises ValueError for a mask that is not bool.
    """
    demand.masks(mask=mask)
    places = torch.arange(mask.shape[-1])
    return (places[:, None] + offset == places) & mask


def uniform(mask: Tensor) -> Tensor:
    """Equal weights on all that may be looked at, as of one head: (B, 1, T_q, T_k).

    mask  bool (B, T_q, T_k)

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


def draw_maps(sentence: Sentence) -> None:
    """Draw the maps of four heads, with the words and letters of the sentence."""
    axes = plots.panels(columns=len(HEADS), width=3.2, height=4.8, share=False)
    for ax, (title, name, head) in zip(axes, HEADS, strict=True):
        queries, keys = sentence.labels[name]
        plots.heatmap(sentence.maps[name][head], ax, title, queries, keys, colorbar=False)
        ax.tick_params(axis="x", rotation=90)
        ax.tick_params(labelsize=8)
        ax.set(ylabel="letter to be written" if "cross" in name else "looks", xlabel="looked at")


def _sources(corpus: Corpus, numbers: Sequence[int]) -> Batch:
    """Numbers as a batch of the corpus."""
    return corpus.batch([(n, in_words(n, "en"), in_words(n, "de")) for n in numbers])


def written(
    patching: Patching, corpus: Corpus, number: int, other: int, places: Sequence[int]
) -> str:
    """Write a number greedily, while the decoder is given some vectors of another number."""
    source, theirs = (_sources(corpus, [n]).source for n in (number, other))
    chosen = torch.zeros(source.shape, dtype=torch.bool)
    chosen[0, list(places)] = True
    letters = list[int]()
    while len(letters) < LONGEST and EOS not in letters:
        target = torch.tensor([[*letters, EOS]])  # whatever stands last: it is asked for
        letters.append(int(patching(source, target, theirs, chosen)[0, -1].argmax()))
    return "".join(corpus.target_vocabulary.decode(letters))


def patch_words(patching: Patching, corpus: Corpus, number: int, other: int) -> list[str]:
    """Replace the vector of each word by the other number's: what is then written, by place.

    Draws how much of its probability each letter of the number loses.
    """
    batch, theirs = (_sources(corpus, [n]) for n in (number, other))
    words = [*in_words(number, "en").split(), "EOS"]
    letters = [*in_words(number, "de"), "EOS"]
    texts, left = [], []
    for place, word in enumerate([*words, "no word"]):
        chosen = torch.arange(len(words)).unsqueeze(0) == place
        p = patching(batch.source, batch.target, theirs.source, chosen)
        left.append(p.gather(2, batch.target.unsqueeze(2))[0, :, 0])
        texts.append(written(patching, corpus, number, other, [place][: place < len(words)]))
        print(f"{word:<8} replaced: {texts[-1]}")
    lost = (left[-1] - torch.stack(left[:-1])).T  # (T_q, T_k)
    ax = plots.panels(width=4.6, height=4.8)
    plots.heatmap(lost, ax, f"{number}, one vector of {other}", letters, words, colorbar=False)
    ax.figure.colorbar(ax.images[0], ax=ax, label="probability lost", ticks=[0, 0.5, 1])
    ax.set(xlabel="word whose vector is replaced", ylabel="letter to be written")
    return texts


def patch_many(
    patching: Patching, corpus: Corpus, count: int
) -> dict[str, list[tuple[bool, bool]]]:
    """Replace one vector at a time in pairs of held-out numbers with the same kinds of words.

    returns  by what was replaced, for each time: whether the number is still written as it was,
             and whether it is written with this word of the other one. Both are printed
    """
    draw, alike = random.Random(0), defaultdict[tuple[str, ...], list[int]](list)
    for number, _, _ in corpus.test:
        alike[kinds(number)].append(number)
    several = [numbers for which, numbers in alike.items() if len(which) > 2 and len(numbers) > 1]
    found = defaultdict[str, list[tuple[bool, bool]]](list)
    for _ in range(count):
        number, other = draw.sample(draw.choice(several), 2)
        words, others = ([*in_words(n, "en").split(), "EOS"] for n in (number, other))
        expected = [exchanged(number, other, [place]) for place in range(len(words))]
        one = _sources(corpus, [number] * len(words)), _sources(corpus, [other] * len(words))
        right = []
        for wanted in ([number] * len(words), expected):
            target = _sources(corpus, wanted).target
            p = patching(one[0].source, target, one[1].source, torch.eye(len(words)) == 1)
            right.append(((p.argmax(-1) == target) | (target == PAD)).all(dim=1).tolist())
        for word, theirs, *both in zip(words, others, *right, strict=True):
            which = "another word" if word != theirs else "the same word"
            found[word if word == "EOS" else which].append((both[0], both[1]))
    for which, rows in found.items():
        own, new = (sum(column) for column in zip(*rows, strict=True))
        print(f"{which:<13} {len(rows)} times: as it was {own}, with the other's word {new}")
    return found


CLAIMS = [
    Claim(
        claim="At the first letter of a word three of four heads look at its English word; "
        "no head of the self-attentions is positional",
        control="a head with equal weights",
        seeds="one model",
        where="What do the heads look at?",
    ),
    Claim(
        claim="Attention agrees with leave-one-out better than gradient · input, less than "
        "the length of the gradient",
        control="random weights; the same sentences",
        seeds="200 sentences, 95 % intervals",
        where="Does it matter?",
    ),
    Claim(
        claim="If the decoder is given the vector of one word from another number, it writes the "
        "number with this word exchanged",
        control="the vector of the same word, or of EOS, from another number",
        seeds="one model, 100 pairs, each of their places",
        where="What if another word stood there?",
    ),
    Claim(
        claim="Where T is larger than the rank, other weights give the same output",
        control="a random direction; rows short enough to have no null space",
        seeds="one model, 200 sentences",
        where="Could the weights be different?",
    ),
    Claim(
        claim="The token can be read from every layer; what the layers bring in is the "
        "token before",
        control="the same model untrained; the most frequent answer",
        seeds="one model, held-out sentences",
        where="Is it still that word?",
    ),
    Claim(
        claim="All heads of the encoder can be removed; in the decoder the order by "
        "importance is a trap",
        control="random orders, and a greedy one",
        seeds="one model, 500 numbers",
        where="Which heads are needed?",
    ),
]
