"""Lesson 14: wider beams and longer numbers, for early translators of three seeds.

Also scores and costs of translators as they were published, each with its source. BLEU and training
cost: Vaswani et al. (2017), table 2; data sizes: section 5.1. BLEU there is that of newstest2014,
case-sensitive, on the paper's own tokens: it is not sacrebleu's.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attention.decoding import beam_search
from attention.experiments.decoding import early
from attention.experiments.recorded import Claim, Experiment
from attention.provided.data.numbers import Corpus, Pair
from attention.provided.models.translators import share_right, texts_of

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
    groups = {d: some for d, some in corpus.test_by_digits(EACH).items() if d > 2}
    pairs = [pair for some in groups.values() for pair in some]
    rows = torch.randint(len(pairs), (500, len(pairs)), generator=torch.Generator().manual_seed(0))
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
    for width in (1, 4):  # alpha is 1 here
        told[f"by length, beam {width}"] = _by_length(counts[width], groups, bleu)
    return rounded(told)


def _by_length(counts: Counts, groups: dict[int, list[Pair]], bleu: Score) -> list[float]:
    """BLEU of the numbers of each length; those of a length are neighbours."""
    scores, start = [], 0
    for some in groups.values():
        part = slice(start, start + len(some))
        scores.append(bleu(*(one[part] for one in counts)))
        start += len(some)
    return scores


def translated(
    model: Any, corpus: Corpus, pairs: Sequence[Pair], width: int, alpha: float
) -> tuple[list[str], float]:
    """Texts, and the mean of their log-probabilities."""
    source = corpus.batch(pairs).source
    ids, scores = beam_search(model, source, width, alpha, max_length=80, return_scores=True)
    return texts_of(corpus, ids), scores.mean().item()


def counted(texts: Sequence[str], pairs: Sequence[Pair], corpus_statistics: Statistics) -> Counts:
    """Statistics of texts beside the pairs' German, in parts of numbers."""
    return corpus_statistics(
        [pieces_of(text) for text in texts], [pieces_of(pair[2]) for pair in pairs]
    )


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
    draw = torch.Generator().manual_seed(0)
    rows = torch.randint(len(counts[0]), (500, size), generator=draw)
    scores = torch.tensor([bleu(*(part[drawn] for part in counts)) for drawn in rows])
    low, high = scores.quantile(torch.tensor([0.025, 0.975])).tolist()
    return high - low


EXPERIMENTS = {
    "beam and length penalty": Experiment(
        claim="A wider beam finds more probable translations, without a length penalty shorter "
        "ones; BLEU rises from 1 to 4. From 4 to 32 it falls for all three seeds without a "
        "penalty, and for none with alpha = 1.",
        control="the width of the beam and alpha; for each seed one model and the same numbers",
        points=[{"seed": seed} for seed in SEEDS],
        run=search_wider,
        again={"seed": 0},
    ),
}
ANSWERS_TO_QUESTIONS = {
    "14 other scores": Experiment(
        claim="With 20 numbers of each length, the arithmetic mean leaves the order of three beams "
        "as it is, and by letters the beam of 4 loses to greedy search, which it beats by parts; "
        "with 5 of each, one seed of three shows neither. Four times as many sentences about halve "
        "the range of BLEU",
        control="the mean, the number of drawn sentences, or the tokens; for each seed one model "
        "and the same numbers",
        points=[{"seed": seed, "each": each} for each in (EACH, 5) for seed in SEEDS],
        run=score_otherwise,
        again=None,
    ),
}
CLAIMS = [
    Claim(
        claim="Drawn in common, the difference of two systems spreads less than drawn apart.",
        control="whether both systems are scored on the same drawn sentences; the two systems kept",
        seeds="0, 1, 2 of the draws",
        where="How much of a score is luck?",
    ),
    Claim(
        claim="The beam gains BLEU for three early translators, numbers without error for two.",
        control="a beam of 1 against 4, alpha = 1; for each seed one model and the same numbers",
        seeds="0, 1, 2",
        where="Two measures",
    ),
]
