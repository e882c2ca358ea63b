"""Lesson 13: what sampling costs, what it finds, and searches whose caches do not follow.

Besides the numbers there are languages drawn at random, small enough to know their most probable
sentence.
"""

import difflib
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.recorded import Claim, Experiment
from attention.experiments.training import fresh
from attention.provided.data.numbers import Batch, Corpus, numbers
from attention.provided.data.tokens import BOS, EOS, PAD
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
TOKENS, LONGEST = 8, 5  # PAD, BOS, EOS and five words; the longest sentence

Search = Callable[..., Any]  # a function of the lesson


def random_language(sureness: float, draw: torch.Generator) -> Tensor:
    """Return log-probabilities (V, V): row i says what follows token i; never PAD nor BOS.

    sureness  how far the scores are apart: 0 makes all tokens equally probable
    """
    scores = sureness * torch.randn(TOKENS, TOKENS, generator=draw)
    scores[:, [PAD, BOS]] = -math.inf
    return scores.log_softmax(dim=1)


def best_log_probability(table: Tensor) -> float:
    """Return the log-probability of the best sentence, which no beam can exceed.

    Of all beginnings that end in the same token only the best can lead to it: so a step needs V · V
    sums, and no search.
    """
    beginnings = table[BOS]  # (V,) the best that ends in each token
    best = beginnings[EOS]
    for _ in range(LONGEST - 1):
        goes_on = beginnings.index_fill(0, torch.tensor([EOS]), -math.inf)
        beginnings = (goes_on.unsqueeze(1) + table).amax(dim=0)
        best = torch.maximum(best, beginnings[EOS])
    return torch.maximum(best, beginnings.amax()).item()


def share_found(
    search: Search, sureness: float, seed: int, widths: Sequence[int], count: int = 200
) -> list[float]:
    """Return in what share of random languages the most probable sentence is found, by beam.

    search  a function like `plain_beam_search`: (next_log_probs, beam, max_length) -> beams

    After `LONGEST` tokens a sentence is over: EOS comes next, at no cost.
    While nbgrader runs the notebook, 2 languages are searched.
    """
    draw, found = torch.Generator().manual_seed(seed), torch.zeros(len(widths))
    over = torch.full((TOKENS,), -math.inf).index_fill(0, torch.tensor([EOS]), 0.0)  # (V,)
    for _ in range(fewer(count, 2)):
        table = random_language(sureness, draw)

        def after(ids: list[int], table: Tensor = table) -> Tensor:
            return table[ids[-1]] if len(ids) <= LONGEST else over  # ids begin with BOS

        scores = [search(after, beam, LONGEST + 1)[0][0] for beam in widths]
        found += torch.tensor(scores) > best_log_probability(table) - 1e-5  # float32 rounds
    return (found / fewer(count, 2)).tolist()


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
    home, found = beam_search.__globals__, {}  # where the search finds `follow_beams`
    for name, follow in (("follows", home["follow_beams"]), ("stays", lambda rows, origin: rows)):
        with mock.patch.dict(home, follow_beams=follow):
            ids, added = beam_search(model, source, 5, 1.0, max_length=80, return_scores=True)
        found[f"{name}: the search says"] = round(added.mean().item(), 3)
        found[f"{name}: the model says"] = round(_asked(model, source, ids).mean().item(), 3)
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
    said = torch.stack([_asked(model, source, ids) for ids in drawn])  # (8, B)
    searched, totals = beam_search(model, source, 8, 0.0, max_length=80, return_scores=True)
    rows = range(0, len(source), len(source) // 4)
    samples = [[texts_of(corpus, ids[[row]])[0] for ids in drawn[:5]] for row in rows]
    return {
        "one sample": round(said.mean().item(), 3),
        "best of 8 samples": round(said.amax(0).mean().item(), 3),
        "greedy": round(_asked(model, source, greedy(model, source, 80)).mean().item(), 3),
        "beam of 8": round(totals.mean().item(), 3),
        "alike, beams": _alike(
            [_beams(plain_beam_search, model, corpus, source[[row]]) for row in rows]
        ),
        "alike, samples": _alike(samples),
    }


def _beams(plain_beam_search: Search, model: Any, corpus: Corpus, source: Tensor) -> list[str]:
    """The texts of the five beams of one source, (1, T_k)."""
    mask = (source != PAD).unsqueeze(1)

    def after(ids: list[int]) -> Tensor:
        with evaluation(model):
            memory = model.encode(source, mask)
            logits = model.decode(torch.tensor([ids]), memory, None, mask)[0, -1]
        logits[[PAD, BOS]] = -math.inf
        return logits.log_softmax(0)

    found = plain_beam_search(after, 5, 60)
    return texts_of(corpus, [torch.tensor(ids) for _, ids in found])


def _alike(groups: Iterable[list[str]]) -> float:
    """The mean share of letters that two of a group have in common, in order: difflib's ratio."""
    shares = [
        difflib.SequenceMatcher(None, one, two, autojunk=False).ratio()
        for texts in groups
        for one, two in itertools.combinations(texts, 2)
    ]
    return round(sum(shares) / len(shares), 3)


def _asked(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    """What the model says of whole sentences, read at once: (B,)."""
    with evaluation(model):
        logits = model(source, target)  # (B, T, V)
    logits[:, :, [PAD, BOS]] = -math.inf
    log_p = logits.log_softmax(2).gather(2, target.unsqueeze(2)).squeeze(2)
    return log_p.masked_fill(target == PAD, 0).sum(1)


SHORT_POINT = {"smoothing": 0.1, "seed": 0, "steps": SHORT}

EXPERIMENTS = {
    "sampling x smoothing": Experiment(
        claim="Sampled letter by letter, a translator that learned from smoothed labels is hardly "
        "ever right at temperature 1, one that did not nearly always; the nucleus cuts most of "
        "the tail off at 1; at 1.5 it holds 15 letters, and three are better",
        control="whether the labels are smoothed, the temperature, and the filter; model, data, "
        "300 steps and the 80 numbers are kept",
        points=[{"smoothing": s, "seed": seed} for s in (0.0, 0.1) for seed in SEEDS]
        + [SHORT_POINT],
        run=sample_smoothed,
        again=SHORT_POINT,
    ),
    "cache that stays": Experiment(
        claim="A search whose cache does not follow its beams reports scores that the model does "
        "not give to what was written",
        control="whether the cache follows its beams; for each seed one model and the same numbers",
        points=[{"seed": seed} for seed in SEEDS],
        run=leave_the_cache,
        again={"seed": 0},
    ),
    "temperature and filter exchanged": Experiment(
        claim="Cut before the temperature, the nucleus saves nearly all numbers at temperature 2, "
        "and after it none; for the three best the order makes no difference",
        control="which comes first; the trained model, the 80 numbers and the noise are kept",
        points=[{"seed": seed} for seed in SEEDS],
        run=exchange,
        again={"seed": 0},
    ),
    "samples and beams": Experiment(
        claim="The best of eight samples is less probable than what a beam of 8 finds; the beams "
        "of a source resemble each other more than samples do",
        control="drawn or searched; for each seed one early translator and the same 80 numbers",
        points=[{"seed": seed} for seed in SEEDS],
        run=draw_or_search,
        again={"seed": 0},
    ),
}

CLAIMS = [
    Claim(
        claim="The surer a random language is, the narrower the beam that finds its most probable "
        "sentence",
        control="the width of the beam; how far the scores are apart; sizes and draws kept",
        seeds="0, 1, 2",
        where="★ How wide must a beam be?",
    ),
    Claim(
        claim="A wider beam finds more probable translations, and without a penalty shorter ones",
        control="the width of the beam; for each seed one model and the same numbers (recorded "
        "for translation)",
        seeds="0, 1, 2",
        where="Long sentences are improbable",
    ),
    Claim(
        claim="Without a cache a token costs the more the later it comes; with one hardly so in "
        "120 tokens",
        control="the cache; model, source and tokens kept",
        seeds="none: three runs, the shortest of every 10 tokens",
        where="What does a token cost?",
    ),
    Claim(
        claim="The search for many sources finds the sentences of the plain one",
        control="batched and cached, or one by one without a cache; model and width kept",
        seeds="0 (one model, five numbers); more in the tests",
        where="The same sentences?",
    ),
]
