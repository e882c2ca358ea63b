"""Lesson 13: translators in doubt, and what sampling, beams and caches do to them.

In the order of the lesson; the recorded trainings and their claims stand at the end.
"""

import difflib
import functools
import itertools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments import recorded
from attention.experiments.recorded import Experiment
from attention.experiments.training import fresh
from attention.provided.data.numbers import Batch, Corpus, numbers
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.figures import plots
from attention.provided.models import beam_search as batched
from attention.provided.models import translators
from attention.provided.models.attention_weights import watch_attention
from attention.provided.models.translators import long_numbers, share_right, texts_of
from attention.provided.training_steps import evaluation, fewer
from attention.sequence_to_sequence import masked_cross_entropy
from attention.train.shipped import trained
from attention.transformer import Transformer

SEEDS = (0, 1, 2)
STEPS = translators.STEPS
SHORT = 20  # steps of the point that a test runs again
EACH = 20  # numbers of each length
TEMPERATURES = (0.5, 1.0, 1.5, 2.0)
FILTERS: dict[str, dict[str, float]] = {
    "all letters": {},
    "the 3 best": {"top_k": 3},
    "nucleus of 0.9": {"top_p": 0.9},
}
EARLY = 60  # steps after which a translator is still in doubt

COLOURS = dict(zip(FILTERS, (plots.GREY, plots.VERMILION, plots.BLUE), strict=True))

Search = Callable[..., Any]  # a function of the lesson


def as_table(words: Sequence[str], follows: Mapping[str, Mapping[str, float]]) -> Tensor:
    """Return a language as log-probabilities (V, V): row i says what follows words[i].

    follows  word → {next word: its probability}; a word that has no entry is followed by EOS
    """
    table = torch.full((len(words), len(words)), -math.inf)
    for i, word in enumerate(words):
        for following, p in follows.get(word, {"EOS": 1.0}).items():
            table[i, words.index(following)] = math.log(p)
    return table


# Translators of numbers


def early_translator(corpus: Corpus, seed: int = translators.SEED) -> tuple[Transformer, float]:
    """Train the small Transformer of lesson 10 for 60 steps.

    Returns it, ready to translate, and its last loss.

    seed  of its weights and of its batches

    While nbgrader runs the notebook, 5 steps are taken.
    """
    model = fresh(corpus, seed)
    batches = corpus.batches(translators.BATCH, EARLY, seed)
    losses = translators.train(model, batches, EARLY, masked_cross_entropy)
    return model.eval(), losses[-1]


@functools.cache
def early(seed: int) -> tuple[Transformer, Corpus]:
    """The early translator of a seed, and the corpus: trained once for lessons 13 and 14."""
    corpus = numbers()
    return early_translator(corpus, seed)[0], corpus


def two_translators() -> tuple[Transformer, Transformer, Corpus]:
    """Return the sharp translator, an early one and their corpus; print what the early one writes.

    They differ in size and in training: this is no comparison.
    """
    sharp, corpus = trained("numbers")
    doubtful, loss = early_translator(corpus)
    for name, model in (("sharp", sharp), ("early", doubtful)):
        print(f"{name}: {translators.size(model):,} parameters")
    print(f"loss of the early one after its last step: {loss:.2f}")
    for number in (40, 382, 816):
        pair = pair_of(corpus, number)
        (text,) = texts_of(corpus, doubtful.translate(corpus.batch([pair]).source))
        print(f"{number}  wanted {pair[2]:<24} written {text}")
    return sharp, doubtful, corpus


def pair_of(corpus: Corpus, number: int) -> Any:
    """Return the pair of a number: (number, English, German)."""
    return next(pair for pair in corpus.train + corpus.test if pair[0] == number)


def next_letter(model: Transformer, corpus: Corpus, number: int, written: str) -> Tensor:
    """Return the scores (1, V) of the letter that follows what is written of a number so far."""
    source = corpus.batch([pair_of(corpus, number)]).source
    letters = corpus.target_vocabulary.tokens
    read = torch.tensor([[BOS, *(letters.index(letter) for letter in written)]])
    mask = (source != PAD).unsqueeze(1)
    with evaluation(model):
        return model.decode(read, model.encode(source, mask), None, mask)[:, -1]


def next_letters(scores: Mapping[str, Tensor], corpus: Corpus) -> Any:
    """Draw the probabilities of the twelve best letters; where some were dropped, count the rest.

    scores   title → scores (1, V), one for each panel; the first says which letters are shown
    returns  the Axes
    """
    shown = next(iter(scores.values()))[0].topk(12).indices
    names = ["EOS" if i == EOS else corpus.target_vocabulary.tokens[i] for i in shown]
    axes = plots.panels(rows=len(scores), width=6.5, height=1.4)
    for ax, (title, row) in zip(axes, scores.items(), strict=True):
        plots.bars(torch.softmax(row[0], dim=0)[shown], names, ax, title=title)
        for number, score in zip(ax.texts, row[0, shown], strict=True):
            number.set_text("–" if score.isinf() else number.get_text())
        ax.set(ylabel="probability", ylim=(0, 0.75))
        if row.isinf().any():
            print(f"{title}: {row.isfinite().sum().item()} of {row.shape[1]} tokens can be drawn")
    return axes


def wider_beams() -> Any:
    """Draw how probable and how long translations are that wider beams find; returns the Axes.

    Recorded for lesson 14: three early translators, 80 numbers; the width changes, and the penalty.
    """
    records, widths = recorded.read("translation", "beam and length penalty"), (1, 2, 4, 8, 32)
    axes = plots.panels(columns=2, width=4.2, height=2.8, share=False)
    for ax, what in zip(axes, ("log-probability", "letters"), strict=True):
        for record in records:
            (line,) = ax.plot(widths, record[f"{what}, 0.0"], ".-", label=f"seed {record['seed']}")
            ax.plot(widths, record[f"{what}, 1.0"], ":", color=line.get_color())
        ax.set(xlabel="width of the beam", ylabel=f"{what} of a number", xscale="log")
        ax.set_xticks(widths, widths)
        ax.minorticks_off()
    axes[1].axhline(records[0]["letters_wanted"], color=plots.GREY, linestyle="--")
    plots.legend(axes[0], fontsize=9)
    return axes


def one_by_one(
    model: Transformer, corpus: Corpus, plain_beam_search: Search, beam_search: Search
) -> float:
    """Search for five numbers one after the other, then for all at once; print both.

    Both searches have four beams and no length penalty; the plain one has no cache either.
    Returns how many times as long the plain one takes.
    """
    source, wanted = long_numbers(corpus)
    rows, most = range(0, len(source), len(source) // fewer(5, 2)), fewer(60, 8)
    begin = time.perf_counter()
    plain = [_beams(plain_beam_search, model, corpus, source[[row]], 4, most) for row in rows]
    between = time.perf_counter()
    ids, totals = beam_search(model, source[rows], 4, 0.0, max_length=most, return_scores=True)
    ratio = (between - begin) / (time.perf_counter() - between)
    for row, beams, text, total in zip(rows, plain, texts_of(corpus, ids), totals, strict=True):
        print(f"{total:6.2f}  {text}  the same: {text == beams[0]}   wanted {wanted[row]}")
    print(f"one after the other took {ratio:.0f} times as long")
    print("the beams of the first:", *plain[0])
    return ratio


def cost_of_a_token(repeating: Search, cached: Search) -> float:
    """Draw milliseconds for each token of a sentence of 120, without a cache and with one.

    One untrained model (four layers, d_model = 256), one source and the same tokens; three runs of
    each. Of every ten tokens the shortest time counts, so that pauses of the machine do not show.

    repeating, cached  the two decoders: (model, source) -> an object whose step(tokens) scores
    returns            time of the last ten / time of the first ten without a cache, median of runs
    """
    torch.manual_seed(0)
    model = Transformer(50, 50, 256, 8, 1024, 4, fused=True)
    source, length, every = torch.randint(3, 50, (1, 20)), fewer(120, 20), 10
    ax, growth = plots.panels(width=5.2, height=3.0), []
    ways = (("without a cache", repeating, plots.VERMILION), ("with a cache", cached, plots.BLUE))
    for label, kind, colour in ways:
        for run in range(fewer(3, 1)):
            spent = _milliseconds(model, kind, source, length)
            print(f"{label:<15} all {length} tokens: {spent.sum() / 1000:.2f} s")
            shortest = spent.view(-1, every).amin(dim=1)
            name = None if run else label
            ax.plot(range(every, length + 1, every), shortest, color=colour, label=name)
            if kind is repeating:
                growth.append((shortest[-1] / shortest[0]).item())
    ax.set(xlabel="tokens", ylabel="ms per token", ylim=(0, None))
    plots.legend(ax, fontsize=9)
    return median(growth)


def _milliseconds(model: Transformer, kind: Search, source: Tensor, length: int) -> Tensor:
    """What each token of a sentence takes: (length,)."""
    spent = []
    with evaluation(model):
        decoder = kind(model, source)
        for _ in range(length):
            begin = time.perf_counter()
            decoder.step(torch.tensor([7]))
            spent.append(1000 * (time.perf_counter() - begin))
    return torch.tensor(spent)


def cache_that_stays(
    model: Transformer, corpus: Corpus, beam_search: Search, stays: Search
) -> None:
    """Print what a search says of its sentences and what the model says, when asked again.

    Only the rows of the caches change that the beams go on with. Below, the same for three models,
    recorded by `leave_the_cache`, which can be run: `leave_the_cache(0, beam_search)`.

    stays  origins (B, K) → rows of the cache (B, K), in the place of `followed`
    """
    source, wanted = long_numbers(corpus)
    for label, function in (("follows", batched.followed), ("stays", stays)):
        ids, said, asked = _search_with(function, beam_search, model, source)
        print(f"the cache {label:<8} the search says {said.mean():6.2f}, the model", end=" ")
        print(f"{asked.mean():6.2f}   {texts_of(corpus, ids)[-1]}")
    print(f"wanted {wanted[-1]}\nrecorded, three models:")
    for row in recorded.read("decoding", "cache that stays"):
        told = [f"{row[f'stays: the {who} says']:6.2f}" for who in ("search", "model")]
        print(f"seed {row['seed']}, the cache stays: search {told[0]}, model {told[1]}")


def _search_with(
    rows: Search, beam_search: Any, model: nn.Module, source: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Ids of a search with ``rows`` for `followed`; what it says of them, and the model."""
    with mock.patch.object(batched, "followed", rows):
        ids, said = beam_search(model, source, 5, 1.0, max_length=80, return_scores=True)
    return ids, said, log_probability(model, source, ids)


def sampled_sentences() -> dict[str, float]:
    """Draw the share of 80 numbers without any error, against the temperature, by filter.

    The small translator, trained for 300 steps with smoothed labels and without, from three seeds;
    recorded by `sample_smoothed`. Prints how probable all but the best letter are together, and how
    many letters the nucleus holds.

    returns  filter → share of numbers without error at temperature 1 with smoothed labels, the mean
             of the seeds
    """
    records = [
        row for row in recorded.read("decoding", "sampling x smoothing") if "steps" not in row
    ]
    axes = plots.panels(columns=2, width=4.2, height=3.0)
    print(f"{'':17}all letters but the best{'':12}letters in the nucleus\nsmoothing  seed", end="")
    print(*(f"{t:8}" for t in TEMPERATURES), "  ", *(f"{t:6}" for t in TEMPERATURES), sep="")
    for row in records:
        ax = axes[int(row["smoothing"] > 0)]
        for name, colour in COLOURS.items():
            label = None if row["seed"] else name
            ax.plot(TEMPERATURES, row[name], ".-", color=colour, label=label)
        rest = "  ".join(f"{share:6.2%}" for share in row["all but the best"])
        held = "  ".join(f"{letters:5.2f}" for letters in row["letters in the nucleus"])
        print(f"{row['smoothing']:9}  {row['seed']:4}  {rest}     {held}")
    for ax, title in zip(axes, ("labels not smoothed", "labels smoothed"), strict=True):
        ax.set(ylim=(-0.03, 1.05), xticks=TEMPERATURES, xlabel="temperature", title=title)
    axes[0].set_ylabel("without error")
    plots.legend(axes[1], fontsize=9)
    smoothed = [row for row in records if row["smoothing"]]
    one = TEMPERATURES.index(1.0)
    return {name: sum(row[name][one] for row in smoothed) / len(smoothed) for name in FILTERS}


def where_it_looks(
    model: Transformer, corpus: Corpus, beam_search: Search, number: int = 382
) -> tuple[list[Tensor], list[str], list[str]]:
    """Draw all heads of the cross-attention while a number is written, with a beam of 5.

    Prints the mean weight that each head leaves on EOS, over the letters of 80 numbers.
    Returns the maps, (H, T_q, T_k) for each layer, and the labels of their rows and columns.
    """
    pair = pair_of(corpus, number)
    source = corpus.batch([pair]).source
    ids, weights = _watched(model, source, beam_search)
    maps = [one[0] for one in weights]
    queries, keys = [*texts_of(corpus, ids)[0], "EOS"], [*pair[1].split(), "EOS"]
    axes = plots.panels(rows=2, columns=fewer(4, 2), width=2.4, height=4.8)
    for layer, row in enumerate(axes):
        for head, ax in enumerate(row):
            title = f"layer {layer}, head {head}"
            plots.heatmap(maps[layer][head], ax, title, queries, keys, colorbar=False)
            ax.set(xlabel="", ylabel="")
            ax.tick_params(axis="x", rotation=60)
    source, _ = long_numbers(corpus)
    ids, weights = _watched(model, source, beam_search)
    inside, ends = ids > EOS, (source == EOS)[:, None, None]  # letters; the EOS of each source
    for layer, one in enumerate(weights):
        given = (one * ends).sum(dim=3)  # (B, H, T_q)
        shares = (f"{given[:, head][inside].mean():.2f}" for head in range(4))
        print(f"layer {layer}, weight on EOS, {len(source)} numbers:", *shares)
    return maps, queries, keys


def _watched(model: Any, source: Tensor, beam_search: Search) -> tuple[Tensor, list[Tensor]]:
    """Ids that a beam of 5 writes, and each layer's weights over the source, (B, H, T_q, T_k)."""
    ids = beam_search(model, source, beam=5)
    with watch_attention(model) as weights, torch.no_grad():
        model(source, ids)
    return ids, [weights[f"decoder.layers.{layer}.cross_attention"] for layer in (0, 1)]


# What is recorded


def sample_smoothed(
    smoothing: float, seed: int, sample: Search, top_p_filter: Search, steps: int = STEPS
) -> dict[str, list[float]]:
    """Train with labels smoothed or not, then sample: the share right, by filter; and the tail."""
    corpus = numbers()
    model = fresh(corpus, seed)

    def loss(logits: Tensor, target: Tensor) -> Tensor:
        scores = logits.transpose(1, 2)
        return F.cross_entropy(scores, target, ignore_index=PAD, label_smoothing=smoothing)

    batches = corpus.batches(translators.BATCH, steps, seed)
    translators.train(model, batches, steps, loss)
    source, wanted = long_numbers(corpus, EACH if steps == STEPS else 2)
    found: dict[str, list[float]] = {}
    for label, options in FILTERS.items():
        found[label] = []
        for temperature in TEMPERATURES:
            ids = sample(model, source, temperature, seed=seed, max_length=70, **options)
            found[label].append(round(share_right(texts_of(corpus, ids), wanted), 3))
    pair_of = {pair[2]: pair for pair in corpus.test}
    return found | _tail(model, top_p_filter, corpus.batch([pair_of[text] for text in wanted]))


def _tail(model: nn.Module, top_p_filter: Search, batch: Batch) -> dict[str, list[float]]:
    """What is left to all letters but the best, and how many the nucleus holds, by temperature."""
    with evaluation(model):
        logits = model(batch.source, batch.target)[batch.target != PAD]  # (letters, V)
    logits[:, [PAD, BOS]] = -math.inf
    others, held = [], []
    for temperature in TEMPERATURES:
        scores = logits / temperature
        others.append(round((1 - scores.softmax(1).amax(1)).mean().item(), 4))
        held.append(round((top_p_filter(scores, 0.9) > -math.inf).sum(1).float().mean().item(), 2))
    return {"all but the best": others, "letters in the nucleus": held}


def leave_the_cache(seed: int, beam_search: Any) -> dict[str, float]:
    """Search with caches that follow their beams and with some that stay; what the model says."""
    model, corpus = early(seed)
    source, wanted = long_numbers(corpus, EACH)
    followed, found = batched.followed, {}

    def stays(origin: Tensor) -> Tensor:
        return followed(torch.arange(origin.shape[1]).expand_as(origin))

    for name, follow in (("follows", followed), ("stays", stays)):
        ids, said, asked = _search_with(follow, beam_search, model, source)
        found[f"{name}: the search says"] = round(said.mean().item(), 3)
        found[f"{name}: the model says"] = round(asked.mean().item(), 3)
        found[f"{name}: right"] = round(share_right(texts_of(corpus, ids), wanted), 3)
    return found


def exchange(
    seed: int, write: Search, sample_tokens: Search, top_k_filter: Search, top_p_filter: Search
) -> dict[str, float]:
    """Sample at temperature 2 from the trained model: filtered after it is divided, and before."""
    model, corpus = trained("numbers")
    source, wanted = long_numbers(corpus, EACH)
    found = {}
    for name, keep in (
        ("the 3 best", lambda logits: top_k_filter(logits, 3)),
        ("nucleus of 0.9", lambda logits: top_p_filter(logits, 0.9)),
    ):
        for order, filtered in (
            ("after", lambda logits, keep=keep: keep(logits / 2)),
            ("before", lambda logits, keep=keep: keep(logits) / 2),
        ):
            draw = torch.Generator().manual_seed(seed)

            def choose(logits: Tensor, filtered: Any = filtered, draw: Any = draw) -> Tensor:
                noise = torch.rand(len(logits), generator=draw)
                return sample_tokens(filtered(logits), noise)

            texts = texts_of(corpus, write(model, source, choose, 70))
            found[f"{name}, {order}"] = round(share_right(texts, wanted), 3)
    return found


def draw_or_search(
    seed: int, sample: Search, greedy: Search, beam_search: Search, plain_beam_search: Search
) -> dict[str, float]:
    """Eight samples of each number against a beam of 8; and how alike five of each are."""
    model, corpus = early(seed)
    source, _ = long_numbers(corpus, EACH)
    drawn = [sample(model, source, seed=8 * seed + i, max_length=80) for i in range(8)]
    said = torch.stack([log_probability(model, source, ids) for ids in drawn])  # (8, B)
    searched, totals = beam_search(model, source, 8, 0.0, max_length=80, return_scores=True)
    rows = range(0, len(source), len(source) // 4)
    samples = [[texts_of(corpus, ids[[row]])[0] for ids in drawn[:5]] for row in rows]
    return {
        "one sample": round(said.mean().item(), 3),
        "best of 8 samples": round(said.amax(0).mean().item(), 3),
        "greedy": round(log_probability(model, source, greedy(model, source, 80)).mean().item(), 3),
        "beam of 8": round(totals.mean().item(), 3),
        "alike, beams": _alike(
            [_beams(plain_beam_search, model, corpus, source[[row]], 5, 60) for row in rows]
        ),
        "alike, samples": _alike(samples),
    }


def _beams(
    plain_beam_search: Search, model: Any, corpus: Corpus, source: Tensor, beam: int, most: int
) -> list[str]:
    """The texts of the beams of one source, (1, T_k)."""
    mask = (source != PAD).unsqueeze(1)
    with evaluation(model):
        memory = model.encode(source, mask)

    def after(ids: list[int]) -> Tensor:
        with evaluation(model):
            logits = model.decode(torch.tensor([ids]), memory, None, mask)[0, -1]
        logits[[PAD, BOS]] = -math.inf
        return logits.log_softmax(0)

    found = plain_beam_search(after, beam, most)
    return texts_of(corpus, [torch.tensor(ids) for _, ids in found])


def _alike(groups: Iterable[list[str]]) -> float:
    """The mean share of letters that two of a group have in common, in order: difflib's ratio."""
    shares = [
        difflib.SequenceMatcher(None, one, two, autojunk=False).ratio()
        for texts in groups
        for one, two in itertools.combinations(texts, 2)
    ]
    return round(sum(shares) / len(shares), 3)


def log_probability(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    """Return what a model says of whole sentences, read at once: (B, T_k), (B, T_q) -> (B,)."""
    with evaluation(model):
        logits = model(source, target)  # (B, T, V)
    logits[:, :, [PAD, BOS]] = -math.inf
    log_p = logits.log_softmax(2).gather(2, target.unsqueeze(2)).squeeze(2)
    return log_p.masked_fill(target == PAD, 0).sum(1)


SHORT_POINT = {"smoothing": 0.1, "seed": 0, "steps": SHORT}

EXPERIMENTS = {
    "sampling x smoothing": Experiment(
        points=[{"smoothing": s, "seed": seed} for s in (0.0, 0.1) for seed in SEEDS]
        + [SHORT_POINT],
        run=sample_smoothed,
        again=SHORT_POINT,
    ),
    "cache that stays": Experiment(
        points=[{"seed": seed} for seed in SEEDS],
        run=leave_the_cache,
        again={"seed": 0},
    ),
    "temperature and filter exchanged": Experiment(
        points=[{"seed": seed} for seed in SEEDS],
        run=exchange,
        again={"seed": 0},
    ),
    "samples and beams": Experiment(
        points=[{"seed": seed} for seed in SEEDS],
        run=draw_or_search,
        again={"seed": 0},
    ),
}
