"""Lesson 14: wider beams, for early translators of three seeds, and what was recorded on Multi30k.

Also scores and costs of translators as they were published, each with its source. BLEU and training
cost: Vaswani et al. (2017), table 2; data sizes: section 5.1. BLEU there is that of newstest2014,
case-sensitive, on the paper's own tokens: it is not sacrebleu's.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import sacrebleu
import torch
from matplotlib.axes import Axes
from torch import Tensor

from attention.decoding import beam_search
from attention.experiments.decoding import early
from attention.experiments.recorded import Experiment, read
from attention.provided.data.numbers import Corpus, Pair
from attention.provided.data.tokens import pad
from attention.provided.figures import plots
from attention.provided.files import ROOT
from attention.provided.models import translators
from attention.provided.models.translators import long_numbers, share_right, texts_of
from attention.train import shipped
from attention.train.core.model import load_model
from attention.train.corpora import multi30k

Counts = Sequence[Tensor]  # matches, totals, lengths, reference_lengths
Score = Callable[..., float]
Statistics = Callable[..., Counts]

SEEDS = (0, 1, 2)
WIDTHS = (1, 2, 4, 8, 32)
EACH = 20  # numbers of each length
PARTS = (
    "zwanzig dreißig hundert tausend sieben sechs zwölf eins fünf vier drei zwei acht neun zehn "
    "null sech sieb ein elf und zig"
)
PIECE = re.compile("|".join([*PARTS.split(), "."]))  # as the lesson cuts them


def pieces_of(text: str) -> list[str]:
    """Return the parts of a number in words; a letter that is in none of them stands alone.

    >>> pieces_of("zweihunderteinunddreizig")
    ['zwei', 'hundert', 'ein', 'und', 'drei', 'zig']
    """
    return PIECE.findall(text)


def in_pieces(texts: Iterable[str]) -> list[list[str]]:
    """Return the parts of every number."""
    return [pieces_of(text) for text in texts]


PAIRS = {"English to German": 4.5e6, "English to French": 36e6}  # sentence pairs of WMT 2014


class System(NamedTuple):
    """One row of the table: ``bleu`` on WMT 2014, and ``flops``, those of its training."""

    name: str
    bleu: float
    flops: float


TABLE_2 = {
    "English to German": [
        System("GNMT + RL", 24.6, 2.3e19),
        System("ConvS2S", 25.16, 9.6e18),
        System("MoE", 26.03, 2.0e19),
        System("GNMT + RL, ensemble", 26.30, 1.8e20),
        System("ConvS2S, ensemble", 26.36, 7.7e19),
        System("Transformer, base", 27.3, 3.3e18),
        System("Transformer, big", 28.4, 2.3e19),
    ],
    "English to French": [
        System("Deep-Att + PosUnk", 39.2, 1.0e20),
        System("GNMT + RL", 39.92, 1.4e20),
        System("ConvS2S", 40.46, 1.5e20),
        System("MoE", 40.56, 1.2e20),
        System("Deep-Att + PosUnk, ensemble", 40.4, 8.0e20),
        System("GNMT + RL, ensemble", 41.16, 1.1e21),
        System("ConvS2S, ensemble", 41.29, 1.2e21),
        System("Transformer, base", 38.1, 3.3e18),
        System("Transformer, big", 41.8, 2.3e19),
    ],
}


def search_wider(
    seed: int, bleu: Score, corpus_statistics: Statistics, paired_bootstrap: Callable[..., Any]
) -> dict[str, Any]:
    """Search with wider and wider beams: BLEU, letters, log-probability, accuracy, by alpha."""
    model, corpus = early(seed)
    groups = corpus.test_by_digits(EACH)
    pairs = [pair for digits, some in groups.items() if digits > 2 for pair in some]
    rows = drawn(len(pairs))
    told: dict[str, Any] = {"letters_wanted": sum(len(pair[2]) for pair in pairs) / len(pairs)}
    for alpha in (0.0, 1.0):
        found = {width: translated(model, corpus, pairs, width, alpha) for width in WIDTHS}
        counts = {width: counted(one[0], pairs, corpus_statistics) for width, one in found.items()}
        told |= {
            f"bleu, {alpha}": [bleu(*counts[width]) for width in WIDTHS],
            f"log-probability, {alpha}": [one[1] for one in found.values()],
            f"letters, {alpha}": [sum(map(len, one[0])) / len(pairs) for one in found.values()],
            f"exact, {alpha}": [
                share_right(one[0], [pair[2] for pair in pairs]) for one in found.values()
            ],
            f"gain from 1 to 4, {alpha}": paired_bootstrap(counts[4], counts[1], rows),
            f"gain from 4 to 32, {alpha}": paired_bootstrap(counts[32], counts[4], rows),
        }
    return rounded(told)


def all_held_out(
    seed: int, bleu: Score, corpus_statistics: Statistics, each: int | None = None
) -> dict[str, Any]:
    """Write all held-out numbers of three digits and more, greedily and with a beam of 4.

    each     how many numbers of every length at most
    returns  "bleu" and "exact" of both; "only greedy" and "only the beam", how many numbers only
             one of them writes without error; "width", of the middle 95 % of BLEU on 500 test sets:
             drawn from the lesson's by the bootstrap, and made of EACH new numbers of every length
    """
    model, corpus = early(seed)
    groups = [some for digits, some in corpus.test_by_digits(each or 10_000).items() if digits > 2]
    pairs = [pair for some in groups for pair in some]
    parts = [pairs[begin : begin + 100] for begin in range(0, len(pairs), 100)]
    texts = [
        [text for part in parts for text in translated(model, corpus, part, width, 1.0)[0]]
        for width in (1, 4)
    ]
    counts = [counted(some, pairs, corpus_statistics) for some in texts]
    right = [[text == one[2] for text, one in zip(some, pairs, strict=True)] for some in texts]
    both = list(zip(*right, strict=True))
    draw = torch.Generator().manual_seed(seed)
    begins = [sum(map(len, groups[:n])) for n in range(len(groups))]
    places = list(zip(begins, groups, strict=True))
    new = torch.stack(
        [
            torch.cat([b + torch.randperm(len(some), generator=draw)[:EACH] for b, some in places])
            for _ in range(500)
        ]
    )
    lesson = torch.cat([torch.arange(b, b + min(EACH, len(some))) for b, some in places])
    told = rounded(
        {
            "bleu": [bleu(*one) for one in counts],
            "exact": [sum(one) / len(one) for one in right],
            "width": [
                high - low
                for rows in (lesson[drawn(len(lesson))], new)
                for low, high in [middle(scores_of(counts[0], rows, bleu))]
            ],
        }
    )
    return told | {
        "numbers": len(pairs),
        "only greedy": both.count((True, False)),
        "only the beam": both.count((False, True)),
    }


def translated(
    model: Any, corpus: Corpus, pairs: Sequence[Pair], width: int, alpha: float
) -> tuple[list[str], float]:
    """Texts, and the mean of their log-probabilities."""
    source = corpus.batch(pairs).source
    ids, scores = beam_search(model, source, width, alpha, max_length=80, return_scores=True)
    return texts_of(corpus, ids), scores.mean().item()


def counted(texts: Sequence[str], pairs: Sequence[Pair], corpus_statistics: Statistics) -> Counts:
    """Statistics of texts beside the pairs' German, in parts of numbers."""
    return corpus_statistics(in_pieces(texts), in_pieces(pair[2] for pair in pairs))


def rounded(told: dict[str, Any]) -> dict[str, Any]:
    """All numbers to three digits."""
    return {
        name: round(value, 3) if isinstance(value, float) else [round(one, 3) for one in value]
        for name, value in told.items()
    }


def score_otherwise(
    seed: int, bleu: Score, corpus_statistics: Statistics, each: int = EACH
) -> dict[str, Any]:
    """Score an early translator with other means, other tokens, and fewer sentences.

    each     how many numbers of every length
    returns  "arithmetic", BLEU with the arithmetic mean of the precisions, and "bleu", with beams
             of 1, 4 and 32 without a penalty; for beams of 1 and 4, alpha = 1, "by parts", "by
             letters", the brevity in both, and "letters", their mean number; "widths", of the
             middle 95 % of BLEU on 500 test sets of 20, 40 and 80 drawn sentences, greedy
    """
    model, corpus = early(seed)
    groups = corpus.test_by_digits(each)
    pairs = [pair for digits, some in groups.items() if digits > 2 for pair in some]
    wanted = [pair[2] for pair in pairs]
    plain = [translated(model, corpus, pairs, width, 0.0)[0] for width in (1, 4, 32)]
    penalised = [translated(model, corpus, pairs, width, 1.0)[0] for width in (1, 4)]
    counts = [counted(texts, pairs, corpus_statistics) for texts in plain]
    parts = [counted(texts, pairs, corpus_statistics) for texts in penalised]
    letters = [corpus_statistics([*map(list, texts)], [*map(list, wanted)]) for texts in penalised]
    return rounded(
        {
            "bleu": [bleu(*one) for one in counts],
            "arithmetic": [_arithmetic_bleu(bleu, one) for one in counts],
            "by parts": [bleu(*one) for one in parts],
            "brevity by parts": [_brevity(bleu, one) for one in parts],
            "by letters": [bleu(*one) for one in letters],
            "brevity by letters": [_brevity(bleu, one) for one in letters],
            "letters": [sum(map(len, texts)) / len(pairs) for texts in [*penalised, wanted]],
            "widths": [_width(counts[0], size, bleu) for size in (20, 40, 80)],
        }
    )


def _arithmetic_bleu(bleu: Score, counts: Counts) -> float:
    """As `bleu`, where no precision is 0, but with the arithmetic mean of the precisions."""
    matches, totals = counts[:2]
    precisions = matches.sum(dim=0) / totals.sum(dim=0)  # (4,)
    return 100 * _brevity(bleu, counts) * precisions.mean().item()


def _brevity(bleu: Score, counts: Counts) -> float:
    """What is left of BLEU where every n-gram matches."""
    totals, *lengths = counts[1:]
    return bleu(totals, totals, *lengths) / 100


def _width(counts: Counts, size: int, bleu: Score) -> float:
    """How wide the middle 95 % of BLEU are on 500 test sets of so many drawn sentences."""
    low, high = middle(scores_of(counts, drawn(len(counts[0]), size=size), bleu))
    return high - low


def drawn(count: int, seed: int = 0, size: int | None = None) -> Tensor:
    """Return 500 test sets drawn from ``count`` sentences, with replacement: rows (500, size)."""
    draw = torch.Generator().manual_seed(seed)
    return torch.randint(count, (500, size or count), generator=draw)


def scores_of(counts: Counts, rows: Tensor, bleu: Score) -> Tensor:
    """Return the BLEU of every drawn test set, (500,)."""
    return torch.tensor([bleu(*(part[row] for part in counts)) for row in rows])


def middle(scores: Tensor) -> list[float]:
    """Return the ends of the range that holds the middle 95 % of the scores."""
    return [*scores.quantile(torch.tensor([0.025, 0.975])).tolist()]


def beside_sacrebleu(ours: float, written: Sequence[str], wanted: Sequence[str]) -> None:
    """Print the first number in parts, a score beside sacrebleu's, and the signature of that."""
    metric = sacrebleu.metrics.BLEU(tokenize="none")
    hypotheses, references = ([" ".join(one) for one in in_pieces(of)] for of in (written, wanted))
    print(f"wanted   {references[0]}\nwritten  {hypotheses[0]}")
    theirs = metric.corpus_score(hypotheses, [references]).score
    print(f"BLEU {ours:.10f}, sacrebleu's {theirs:.10f}: difference {abs(ours - theirs):.0e}")
    print("signature:", metric.get_signature())


def pairing(compare: Callable[..., Any], bleu: Score, ours: Counts, theirs: Counts) -> Axes:
    """Draw differences of BLEU for test sets drawn in common, and drawn apart; print the ranges.

    compare  `paired_bootstrap`

    Three times 500 draws. Both systems are kept; only whether they share a test set changes.
    """
    spread: dict[str, list[float]] = {"the same sentences": [], "other sentences": []}
    for seed in SEEDS:
        rows = drawn(len(ours[0]), seed)
        low, high, wins = compare(ours, theirs, rows)
        better = scores_of(ours, rows, bleu)
        apart = better - scores_of(theirs, rows.roll(1, 0), bleu)
        spread["the same sentences"] += (better - scores_of(theirs, rows, bleu)).tolist()
        spread["other sentences"] += apart.tolist()
        print(f"the same: {low:+.1f} to {high:+.1f}, won {wins:.0%}", end="   ")
        print("others: {:+.1f} to {:+.1f}".format(*middle(apart)))
    ax = plots.histograms(spread, xlabel="BLEU, beam of 4 minus greedy", bins=40)
    ax.axvline(0, color=plots.GREY, linestyle="--")
    return ax


def wider_beams(bleu: Score, corpus_statistics: Statistics, compare: Callable[..., Any]) -> str:
    """Print what beams of 1, 4 and 32 write without a length penalty; is the last one better?

    returns  "A" where the beam of 32 is better than that of 4 on nearly all drawn test sets, "C"
             where it is worse, else "B"

    Only the width changes; the early translator of seed 0 and the numbers are kept.
    """
    model, corpus = early(0)
    source, wanted = long_numbers(corpus)
    judged = {}
    print("beam  log-prob.  letters   BLEU")
    for K in (1, 4, 32):
        ids, totals = beam_search(model, source, K, 0.0, max_length=80, return_scores=True)
        texts = texts_of(corpus, ids)
        judged[K] = corpus_statistics(in_pieces(texts), in_pieces(wanted))
        letters = sum(map(len, texts)) / len(texts)
        print(f"{K:4}  {totals.mean():9.2f}  {letters:7.1f}  {bleu(*judged[K]):5.1f}")
    low, high, _ = compare(judged[32], judged[4], drawn(len(wanted)))
    print(f"from 4 to 32: 95 % of the differences between {low:+.1f} and {high:+.1f}")
    return "A" if low > 0 else "C" if high < 0 else "B"


def beams() -> list[Axes]:
    """Draw BLEU and letters against the width of the beam, with a length penalty and without.

    Recorded with three seeds; for each, one model and the same numbers. One seed live, with the
    lesson's pieces: `search_wider(0, bleu, corpus_statistics, paired_bootstrap)`.
    """
    records = read("translation", "beam and length penalty")
    axes: list[Axes] = [*plots.panels(columns=2, width=4.4, height=3.0, share=False)]
    for alpha, colour in ((0.0, plots.VERMILION), (1.0, plots.BLUE)):
        for record in records:
            label = f"alpha = {alpha}" if record["seed"] == 0 else None
            for ax, what in zip(axes, ("bleu", "letters"), strict=True):
                ax.plot(WIDTHS, record[f"{what}, {alpha}"], ".-", color=colour, label=label)
            ends = record[f"gain from 1 to 4, {alpha}"][:2] + record[f"gain from 4 to 32, {alpha}"]
            told = "from 1 to 4: {:+5.1f} to {:+5.1f};  4 to 32: {:+5.1f} to {:+5.1f}"
            print(f"seed {record['seed']}, alpha {alpha},", told.format(*ends))
    axes[1].axhline(records[0]["letters_wanted"], color=plots.GREY, linestyle="--")
    for ax, title in zip(axes, ("BLEU", "letters written"), strict=True):
        ax.set(title=title, xlabel="beam", xscale="log")
        ax.set_xticks(WIDTHS, [str(width) for width in WIDTHS])
        ax.minorticks_off()
    plots.legend(axes[0], fontsize=9)
    return axes


def two_measures(bleu: Score, corpus_statistics: Statistics) -> None:
    """Print BLEU and the share without error for three translators, greedy and with a beam of 4.

    For each model only the beam changes; alpha is 1. The early ones of three seeds are recorded.
    """
    model, corpus = early(0)
    source, wanted = long_numbers(corpus)
    models = {
        "early: 60 steps": model,
        "the same, 300 steps": shipped.trained("transformer")[0],
        "sharp: another": shipped.trained("numbers")[0],
    }
    for name, model in models.items():
        told = f"{name:<20}{translators.size(model):>9,} parameters"
        for K in (1, 4):
            texts = texts_of(corpus, beam_search(model, source, K, alpha=1.0, max_length=80))
            score = bleu(*corpus_statistics(in_pieces(texts), in_pieces(wanted)))
            right = share_right(texts, wanted)
            print(f"{told}, beam {K}: BLEU {score:5.1f}, without error {right:.2f}")
    for record in read("translation", "beam and length penalty"):
        greedy, wider = (record["exact, 1.0"][WIDTHS.index(K)] for K in (1, 4))
        told = f"early, seed {record['seed']}, these 80: without error"
        print(f"{told} {greedy:.2f} greedy, {wider:.2f} with a beam of 4")
    for row in read("translation", "all held-out numbers"):
        told = "early, seed {}, all {}: greedy {:.3f}, beam {:.3f}"
        print(told.format(row["seed"], row["numbers"], *row["exact"]), end="; ")
        one, other = row["only greedy"], row["only the beam"]
        print(f"only greedy {one}, only the beam {other}: by luck {by_luck(one, other):.2f}")


def by_luck(one: int, other: int) -> float:
    """The sign test: how often so many tosses of a coin fall so unevenly, or more.

    >>> by_luck(0, 3)
    0.25
    """
    tosses, least = one + other, min(one, other)
    return min(1.0, 2 * sum(math.comb(tosses, n) for n in range(least + 1)) / 2**tosses)


def new_test_sets() -> None:
    """Print how wide the middle 95 % of BLEU are, by the bootstrap and on new numbers; recorded."""
    for row in read("translation", "all held-out numbers"):
        told = (
            "seed {}: width by the bootstrap {:.1f}, on 500 sets of other held-out numbers {:.1f}"
        )
        print(told.format(row["seed"], *row["width"]))


def real_sentences(bleu: Score, corpus_statistics: Statistics) -> float | None:
    """Translate 200 sentences of Multi30k with a model in runs/multi30k; print BLEU and the first.

    returns  BLEU, or None where the corpus or the model is missing: then it says how to get them
    """
    path = ROOT / "runs" / "multi30k" / "model.safetensors"
    try:
        english, german = (multi30k.load("test_2016_flickr", side)[::5] for side in ("en", "de"))
        model, english_pieces, german_pieces = load_model(path)
    except (multi30k.CorpusError, OSError, ValueError, RuntimeError):
        print("The corpus or the model is not here. Fetch, then train (an hour or more):")
        print(f"  {multi30k.SOURCE.command()}\n  python -m attention.train multi30k")
        return None
    ids = pad([english_pieces.encode(text) for text in english])
    found = [german_pieces.decode(row) for row in beam_search(model, ids, 5, 1.0).tolist()]
    score = bleu(*corpus_statistics(found, german))
    print(f"BLEU on {len(found)} sentences: {score:.1f}")
    for three in list(zip(english, german, found, strict=True))[:5]:
        print("\n{}\n{}\n{}".format(*three))
    return score


def short_training() -> Axes:
    """Draw the losses of a short training on Multi30k, and print its scores; one seed, recorded.

    Made by `python -m benchmarks.multi30k`, which names the command that it ran.
    """
    (short,), curve = read("multi30k", "training"), read("multi30k", "curve")
    print(f"stopped after step {short['steps']}: {short['cpu_seconds']} s of one core", end=", ")
    print(f"{short['tokens']:,} tokens, {short['parameters']:,} parameters")
    for row in read("multi30k", "beam"):
        told = (
            f"beam of {row['beam']}: BLEU {row['bleu']:4.1f}, {row['words']:.1f} words per sentence"
        )
        print(told, "minus greedy, 95 % between {:+.1f} and {:+.1f}".format(*row["gain"]), sep="; ")
    for row in read("multi30k", "baselines"):
        print(f"{row['text']}: BLEU {row['bleu']:.1f}")
    checked = [row for row in curve if "val_loss" in row]
    ax = plots.panels(width=5.2, height=3.0)
    ax.plot(*_columns(curve, "step", "loss"), label="training, smoothed")
    ax.plot(*_columns(checked, "step", "val_loss"), "o", label="validation")
    ax.set(xlabel="step", ylabel="loss per token (nats)")
    plots.legend(ax, fontsize=9)
    return ax


def _columns(rows: Sequence[dict[str, Any]], *names: str) -> list[list[Any]]:
    return [[row[name] for row in rows] for name in names]


def samples() -> None:
    """Print twelve sentences, what was wanted, and what the short training's model wrote."""
    for number, row in enumerate(read("multi30k", "samples")):
        print(f"\n{number}  {row['english']}\n   wanted   {row['wanted']}")
        print(f"   written  {row['written']}")


def rare_words() -> None:
    """Print in how many of the 29,000 English training sentences some words stand."""
    for row in read("multi30k", "corpus"):
        print(f"{row['pattern']:<16} {row['sentences']:6,}")


def published() -> list[Axes]:
    """Draw BLEU on WMT 2014 against the cost of the training, for the systems of TABLE_2."""
    beside: dict[str, tuple[str, tuple[int, int]]] = dict.fromkeys(
        ("MoE", "GNMT + RL", "ConvS2S, ensemble"), ("right", (-6, 2))
    )
    for name in ("GNMT + RL", "Deep-Att + PosUnk"):
        beside[f"{name}, ensemble"] = "center", (0, -13)
    axes: list[Axes] = [*plots.panels(columns=2, width=4.6, height=3.6, share=False)]
    for ax, (title, systems) in zip(axes, TABLE_2.items(), strict=True):
        for one in systems:
            ours = one.name.startswith("Transformer")
            ax.plot(one.flops, one.bleu, "o", color=plots.VERMILION if ours else plots.BLUE)
            side, shift = beside.get(one.name, ("left", (6, 2)))
            place: Any = {"xytext": shift, "textcoords": "offset points", "ha": side}
            ax.annotate(one.name, (one.flops, one.bleu), fontsize=8, **place)
        ax.set(title=f"{title}, {PAIRS[title] / 1e6:g} million pairs", xscale="log")
        ax.set(xlabel="floating-point operations of the training", ylabel="BLEU")
        ax.set(xlim=(2e18, 1e22))
        ax.margins(y=0.12)
    return axes


EXPERIMENTS = {
    "beam and length penalty": Experiment(
        points=[{"seed": seed} for seed in SEEDS],
        run=search_wider,
        again={"seed": 0},
    ),
    "all held-out numbers": Experiment(
        points=[{"seed": seed} for seed in SEEDS],
        run=all_held_out,
        again=None,
    ),
}
ANSWERS_TO_QUESTIONS = {
    "14 other scores": Experiment(
        points=[{"seed": seed, "each": each} for each in (EACH, 5) for seed in SEEDS],
        run=score_otherwise,
        again=None,
    ),
}
