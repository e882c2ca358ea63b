"""Lesson 13: what sampling costs, what it finds, and searches whose caches do not follow."""

import difflib
import itertools
import math

import torch
from torch.nn import functional as F

import attention.decoding
from attention.decoding import (
    beam_search,
    greedy,
    plain_beam_search,
    sample,
    sample_tokens,
    top_k_filter,
    top_p_filter,
    write,
)
from attention.provided import data, trainings, translators
from attention.provided.data import BOS, PAD
from attention.provided.held_out import long_numbers, share_right, texts_of
from attention.provided.key_value_cache import evaluation
from benchmarks.evidence import Claim, Experiment
from benchmarks.evidence.early import early

SEEDS = (0, 1, 2)
STEPS = translators.STEPS
SHORT = 20  # steps of the point that a test runs again
EACH = 20  # numbers of each length
TEMPERATURES = (0.5, 1.0, 1.5, 2.0)
FILTERS = {"all letters": {}, "the 3 best": {"top_k": 3}, "nucleus of 0.9": {"top_p": 0.9}}


def sample_smoothed(smoothing, seed, steps=STEPS):
    """Train with labels smoothed or not, then sample: the share right, by filter; and the tail."""
    corpus = data.numbers()
    model = trainings.fresh(corpus, seed)

    def loss(logits, target):
        scores = logits.transpose(1, 2)
        return F.cross_entropy(scores, target, ignore_index=PAD, label_smoothing=smoothing)

    batches = corpus.batches(translators.BATCH, steps, seed)
    translators.train(model, batches, steps, loss)
    source, wanted = long_numbers(corpus, EACH if steps == STEPS else 2)
    found = {}
    for label, options in FILTERS.items():
        found[label] = []
        for temperature in TEMPERATURES:
            ids = sample(model, source, temperature, seed=seed, max_length=70, **options)
            found[label].append(round(share_right(texts_of(corpus, ids), wanted), 3))
    pair_of = {pair[2]: pair for pair in corpus.test}
    return found | _tail(model, corpus.batch([pair_of[text] for text in wanted]))


def _tail(model, batch):
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


def leave_the_cache(seed):
    """Search with caches that follow their beams and with some that stay; what the model says."""
    model, corpus = early(seed)
    source, wanted = long_numbers(corpus, EACH)
    whole, found = attention.decoding.follow_beams, {}
    for name, follow in (("follows", whole), ("stays", lambda rows, origin: rows)):
        attention.decoding.follow_beams = follow
        try:
            ids, added = beam_search(model, source, 5, 1.0, max_length=80, return_scores=True)
        finally:
            attention.decoding.follow_beams = whole
        found[f"{name}: the search says"] = round(added.mean().item(), 3)
        found[f"{name}: the model says"] = round(_asked(model, source, ids).mean().item(), 3)
        found[f"{name}: right"] = round(share_right(texts_of(corpus, ids), wanted), 3)
    return found


def exchange(seed):
    """Sample at temperature 2 from the trained model: filtered after it is divided, and before."""
    model, corpus = translators.trained("numbers")
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

            def choose(logits, filtered=filtered, draw=draw):
                noise = torch.rand(len(logits), generator=draw)
                return sample_tokens(filtered(logits), noise)

            texts = texts_of(corpus, write(model, source, choose, 70))
            found[f"{name}, {order}"] = round(share_right(texts, wanted), 3)
    return found


def draw_or_search(seed):
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
        "alike, beams": _alike([_beams(model, corpus, source[[row]]) for row in rows]),
        "alike, samples": _alike(samples),
    }


def _beams(model, corpus, source):
    """The texts of the five beams of one source, (1, T_k)."""
    mask = (source != PAD).unsqueeze(1)

    def after(ids):
        with evaluation(model):
            memory = model.encode(source, mask)
            logits = model.decode(torch.tensor([ids]), memory, None, mask)[0, -1]
        logits[[PAD, BOS]] = -math.inf
        return logits.log_softmax(0)

    found = plain_beam_search(after, 5, 60)
    return texts_of(corpus, [torch.tensor(ids) for _, ids in found])


def _alike(groups):
    """The mean share of letters that two of a group have in common, in order: difflib's ratio."""
    shares = [
        difflib.SequenceMatcher(None, one, two, autojunk=False).ratio()
        for texts in groups
        for one, two in itertools.combinations(texts, 2)
    ]
    return round(sum(shares) / len(shares), 3)


def _asked(model, source, target):
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
