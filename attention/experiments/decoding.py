"""Lesson 13: translators in doubt, and what sampling, beams and caches do to them.

In the order of the lesson; the recorded trainings and their claims stand at the end.
"""

import difflib
import functools
import itertools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
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
TRAINED = (60, 80, 100, 120, 150)  # steps: from one that is in doubt to one that is sure

COLOURS = dict(zip(FILTERS, (plots.GREY, plots.VERMILION, plots.BLUE), strict=True))

PENALTIES = {0.0: ("no penalty", plots.VERMILION), 1.0: ("α = 1", plots.BLUE)}  # by alpha

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


def early_translator(
    corpus: Corpus, seed: int = translators.SEED, steps: int = EARLY
) -> tuple[Transformer, float]:
    """Train the small Transformer of lesson 10 for a few steps.

    Returns it, ready to translate, and its last loss.

    seed  of its weights and of its batches

    While nbgrader runs the notebook, 5 steps are taken.
    """
    model = fresh(corpus, seed)
    batches = corpus.batches(translators.BATCH, steps, seed)
    losses = translators.train(model, batches, steps, masked_cross_entropy)
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
        print(f"{number:<3}  wanted {pair[2]:<24} written {text}")
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
    axes = plots.panels(rows=len(scores), width=6.5, height=1.6)
    for ax, (title, row) in zip(axes, scores.items(), strict=True):
        plots.bars(torch.softmax(row[0], dim=0)[shown], names, ax, title=title)
        for number, score in zip(ax.texts, row[0, shown], strict=True):
            number.set_text("–" if score.isinf() else number.get_text())
        ax.set(ylabel="probability", ylim=(0, 0.75))
        ax.tick_params(labelbottom=True)
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
        for alpha, (name, colour) in PENALTIES.items():
            for record in records:
                label = None if record["seed"] else name
                ax.plot(widths, record[f"{what}, {alpha}"], ".-", color=colour, label=label)
        ax.set(xlabel="width of the beam", ylabel=f"{what} of a number", xscale="log")
        ax.set_xticks(widths, widths)
        ax.minorticks_off()
    wanted = records[0]["letters_wanted"]
    axes[1].axhline(wanted, color=plots.GREY, linestyle="--")
    axes[1].text(32, wanted + 0.6, "wanted", ha="right", color=plots.GREY, fontsize=9)
    axes[1].set_ylim(0, 42)
    plots.legend(axes[0], fontsize=9)
    return axes


def beams_against_greedy() -> str:
    """Draw how many more of all held-out numbers a beam of 4 writes without error than greedy does.

    Recorded by `beams_right`: translators of five lengths of training, each from three seeds; only
    the search changes, and the penalty.

    returns  "A", "B" or "C": whether the beam with alpha = 1 gains most, in the mean of the seeds,
             after the fewest steps, some between, or the most
    """
    rows = recorded.read("decoding", "beams and errors")
    ax, numbers_of = plots.panels(width=5.2, height=3.0), rows[0]["numbers"]
    more = {}
    for alpha, (name, colour) in PENALTIES.items():
        for row in rows:
            more[alpha, row["steps"], row["seed"]] = row[f"gained, {alpha}"] - row[f"lost, {alpha}"]
        for seed in SEEDS:
            gains = [more[alpha, steps, seed] for steps in TRAINED]
            ax.plot(TRAINED, gains, ".-", color=colour, label=None if seed else name)
    ax.axhline(0, color=plots.GREY, linestyle="--")
    ax.text(TRAINED[-1], -2, "greedy", ha="right", va="top", color=plots.GREY, fontsize=9)
    ax.set(xlabel="steps of training", xticks=TRAINED)
    ax.set_ylabel(f"more numbers right\nthan greedy (of {numbers_of})")
    plots.legend(ax, fontsize=9)
    print("seeds 0, 1, 2: numbers without error by greedy search; how many more a beam of 4 gets")
    print(f"steps{'greedy':>15}{'no penalty':>25}{'α = 1':>21}")
    for steps in TRAINED:
        right = [row["greedy"] / numbers_of for row in rows if row["steps"] == steps]
        print(f"{steps:5}  ", *(f"{share:6.1%}" for share in right), end="  ")
        for alpha in PENALTIES:
            print("    ", *(f"{more[alpha, steps, seed]:+5}" for seed in SEEDS), end="")
        print()
    best = max(TRAINED, key=lambda steps: sum(more[1.0, steps, seed] for seed in SEEDS))
    return "A" if best == TRAINED[0] else "C" if best == TRAINED[-1] else "B"


def one_by_one(
    model: Transformer, corpus: Corpus, plain_beam_search: Search, beam_search: Search
) -> float:
    """Search for five numbers one after the other, then for all at once; print both.

    Both searches have four beams, no length penalty and no cache. For the first number the two best
    beams are printed after some of the steps, too.
    Returns how many times as long the plain one takes.
    """
    source, wanted = long_numbers(corpus)
    rows, most = range(0, len(source), len(source) // fewer(5, 2)), fewer(60, 8)
    begin = time.perf_counter()
    plain = [_beams(plain_beam_search, model, corpus, source[[row]], 4, most) for row in rows]
    between = time.perf_counter()
    ids = beam_search(model, source[rows], 4, 0.0, max_length=most, cache=False)
    ratio = (between - begin) / (time.perf_counter() - between)
    for row, beams, text in zip(rows, plain, texts_of(corpus, ids), strict=True):
        same = "the same" if text == beams[0][1] else f"not the same: {text}"
        print(f"wanted {wanted[row]}\n found {beams[0][1]}, {same}")
    print(f"one after the other took {ratio:.0f} times as long")
    print("log-probability of two beams for the first number, after some steps and at the end:")
    for steps in sorted({min(steps, most) for steps in (4, 5, 16, 18, most)}):
        pairs = _beams(plain_beam_search, model, corpus, source[[0]], 4, steps)[:2]
        shown = [f"{p:.2f}  {text + ' EOS' * (len(text) < steps):<24}" for p, text in pairs]
        print(f"{steps:4}  ", *shown)
    return ratio


def greedy_or_sampled(
    models: Mapping[str, Transformer], corpus: Corpus, write: Search, sample: Search
) -> None:
    """Print how many of 80 numbers each model gets right: greedily, and drawn at temperature 1."""
    source, wanted = long_numbers(corpus)

    def right(ids: Tensor) -> int:
        return round(len(wanted) * share_right(texts_of(corpus, ids), wanted))

    print(f"right of {len(wanted)}, by greedy search and drawn from all letters, seeds 0, 1, 2:")
    for name, model in models.items():
        best = right(write(model, source, lambda logits: logits.argmax(dim=1)))
        print(f"{name}: {best:3}  ", *(f"{right(sample(model, source, seed=s)):3}" for s in SEEDS))


def cost_of_a_token(repeating: Search, cached: Search) -> float:
    """Draw milliseconds for each token of a sentence of 120, without a cache and with one.

    One untrained model (four layers, d_model = 256), one source and the same tokens; five runs of
    each, in turns. Of every ten tokens the fastest run counts, and only the time that the process
    computes, so that other programs hardly show.

    repeating, cached  the two decoders: (model, source) -> an object whose step(tokens) scores
    returns            time of the last ten / time of the first ten, without a cache
    """
    torch.manual_seed(0)
    model = Transformer(50, 50, 256, 8, 1024, 4, fused=True)
    source, length, every = torch.randint(3, 50, (1, 20)), fewer(120, 20), 10
    kinds, runs = (repeating, cached), range(fewer(5, 1))
    spent = torch.stack(
        [torch.stack([_milliseconds(model, k, source, length) for k in kinds]) for _ in runs]
    )  # (runs, 2, length)
    shortest = spent.unflatten(2, (-1, every)).mean(dim=3).amin(dim=0)  # (2, length / every)
    ax, names = plots.panels(width=5.2, height=3.0), ("without a cache", "with a cache")
    for i, (name, colour) in enumerate(zip(names, (plots.VERMILION, plots.BLUE), strict=True)):
        print(f"{name:<15} all {length} tokens: {spent[:, i].sum(1).min() / 1000:.2f} s")
        ax.plot(range(every, length + 1, every), shortest[i], ".-", color=colour, label=name)
    ax.set(xlabel="place in the sentence", ylabel="ms per token", ylim=(0, None))
    plots.legend(ax, fontsize=9)
    return (shortest[0, -1] / shortest[0, 0]).item()


def _milliseconds(model: Transformer, kind: Search, source: Tensor, length: int) -> Tensor:
    """What each token of a sentence takes the process: (length,)."""
    spent = []
    with evaluation(model):
        decoder = kind(model, source)
        for _ in range(length):
            begin = time.process_time()
            decoder.step(torch.tensor([7]))
            spent.append(1000 * (time.process_time() - begin))
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
    print(*(f"{t:8}" for t in TEMPERATURES), "   ", *(f"{t:7}" for t in TEMPERATURES), sep="")
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
    axes[0].set_ylabel("share without error")
    plots.legend(axes[1], fontsize=9)
    smoothed = [row for row in records if row["smoothing"]]
    one = TEMPERATURES.index(1.0)
    return {name: sum(row[name][one] for row in smoothed) / len(smoothed) for name in FILTERS}


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


def beams_right(steps: int, seed: int, beam_search: Any) -> dict[str, int]:
    """Train for so many steps, then write all held-out numbers of three to six digits.

    returns  "numbers"; "greedy", how many of them have no error; for a beam of 4 and each alpha how
             many only the beam writes without error ("gained"), and how many only greedy ("lost")
    """
    corpus = numbers()
    model, _ = early_translator(corpus, seed, steps)
    source, wanted = long_numbers(corpus, each=len(corpus.test))

    def right(beam: int, alpha: float) -> set[int]:
        texts = texts_of(corpus, beam_search(model, source, beam, alpha, max_length=80))
        return {i for i, text in enumerate(texts) if text == wanted[i]}

    greedy = right(1, 0.0)
    found = {"numbers": len(wanted), "greedy": len(greedy)}
    for alpha in (0.0, 1.0):
        beam = right(4, alpha)
        found |= {f"gained, {alpha}": len(beam - greedy), f"lost, {alpha}": len(greedy - beam)}
    return found


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
            [
                [text for _, text in _beams(plain_beam_search, model, corpus, source[[row]], 5, 60)]
                for row in rows
            ]
        ),
        "alike, samples": _alike(samples),
    }


def _beams(
    plain_beam_search: Search, model: Any, corpus: Corpus, source: Tensor, beam: int, most: int
) -> list[tuple[float, str]]:
    """Log-probabilities and texts of the beams of one source, (1, T_k)."""
    mask = (source != PAD).unsqueeze(1)
    with evaluation(model):
        memory = model.encode(source, mask)

    def after(ids: list[int]) -> Tensor:
        with evaluation(model):
            logits = model.decode(torch.tensor([ids]), memory, None, mask)[0, -1]
        logits[[PAD, BOS]] = -math.inf
        return logits.log_softmax(0)

    found = plain_beam_search(after, beam, most)
    texts = texts_of(corpus, [torch.tensor(ids) for _, ids in found])
    return [(log_p, text) for (log_p, _), text in zip(found, texts, strict=True)]


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
    "beams and errors": Experiment(
        points=[{"steps": steps, "seed": seed} for steps in TRAINED for seed in SEEDS],
        run=beams_right,
        again=None,
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
