"""Lesson 03: translators that differ in one factor at a time, and what their attention looks at.

`train_one` trains one of them as lessons 02 and 03 do, and measures it.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn

from attention.experiments import recorded
from attention.experiments.recorded import Experiment
from attention.experiments.sequence_to_sequence import measured
from attention.provided.data.numbers import Batch, Corpus, Pair, in_words, numbers
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.figures import plots, seeds
from attention.provided.models import translators
from attention.provided.models.additive_attention import attend
from attention.provided.models.recurrent import run_packed
from attention.provided.training_steps import fewer, one_thread
from attention.sequence_to_sequence import masked_cross_entropy

ANSWERS = "bahdanau_attention"

D_EMBEDDING, D_STATE = 32, 64
SHOWN = 931  # whose alignment is recorded


class Additive(nn.Module):
    """The attention of lesson 03: `keys` once per sentence, `forward` once per letter."""

    def __init__(self, d_q: int, d_k: int, d_attention: int = 64):
        super().__init__()
        self.W_q = nn.Linear(d_q, d_attention, bias=False)
        self.W_k = nn.Linear(d_k, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)

    def keys(self, annotations: Tensor) -> Tensor:
        """Project the annotations, (B, T_k, d_k) to (B, T_k, d_attention)."""
        keys: Tensor = self.W_k(annotations)
        return keys

    def forward(self, state: Tensor, keys: Tensor, values: Tensor, lengths: Tensor) -> Any:
        """Return context (B, T_q, d_v) and weights (B, T_q, T_k) for states (B, T_q, d_q)."""
        return attend(self.W_q(state), keys, self.v.weight[0], values, lengths)


class Compared(nn.Module):
    """A translator with a GRU on either side, and one way for the decoder to know the source.

    sizes          sizes of the two vocabularies
    attention      None: at every step the decoder reads the same vector, the state or states in
                   which the encoder ends; or a layer like `Additive`: a context for every letter
    bidirectional  whether the encoder is a forward and a backward RNN of d_source / 2 numbers each
                   or a single forward RNN of d_source
    asks_after     whether the query is the state that has read the previous letter, or, as in
                   lesson 03, the state before that

    forward(source, lengths, target)  (B, T_k), (B,), (B, T_q) -> logits (B, T_q, vocab_size)
    """

    def __init__(
        self,
        sizes: tuple[int, int],
        attention: nn.Module | None,
        bidirectional: bool = True,
        asks_after: bool = False,
        d_source: int = 128,
    ):
        super().__init__()
        self.attention, self.asks_after = attention, asks_after
        self.source_embedding = nn.Embedding(sizes[0], D_EMBEDDING)
        self.encoder = nn.GRU(
            D_EMBEDDING,
            d_source // (1 + bidirectional),
            batch_first=True,
            bidirectional=bidirectional,
        )
        self.first_state = nn.Linear(d_source, D_STATE)
        self.target_embedding = nn.Embedding(sizes[1], D_EMBEDDING)
        self.decoder = nn.GRUCell(D_EMBEDDING + d_source, D_STATE)
        self.output = nn.Linear(D_STATE + d_source, sizes[1])

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return the annotations (B, T_k, d_source) and the one vector (B, d_source)."""
        annotations, last = run_packed(self.encoder, self.source_embedding(source), lengths)
        return annotations, torch.cat([*last], dim=1)

    def begin(self, source: Tensor, lengths: Tensor) -> tuple[Any, Tensor, Tensor]:
        """Return what stays for a sentence, the first state, and the context that is read first."""
        annotations, vector = self.encode(source, lengths)
        state = torch.tanh(self.first_state(vector))
        if self.attention is None:
            return None, state, vector
        keys = self.attention.keys(annotations)  # type: ignore[operator]  # not a Tensor
        return (keys, annotations, lengths), state, torch.zeros_like(vector)

    def step(self, tokens: Tensor, state: Tensor, context: Tensor, source: Any) -> Any:
        """Read a token; returns features for the output, the state, the context and the weights."""
        x, weights = self.target_embedding(tokens), None
        if source and not self.asks_after:
            context, weights = self._look(state, source)
        state = self.decoder(torch.cat([x, context], dim=1), state)
        if source and self.asks_after:
            context, weights = self._look(state, source)
        return torch.cat([state, context], dim=1), state, context, weights

    def _look(self, state: Tensor, source: Any) -> tuple[Tensor, Tensor]:
        context, weights = self.attention(state[:, None], *source)  # type: ignore[misc]
        return context[:, 0], weights[:, 0]

    def align(self, source: Tensor, lengths: Tensor, target: Tensor) -> tuple[Tensor, Any]:
        """Return logits (B, T_q, vocab_size) and weights (B, T_q, T_k), by teacher forcing."""
        fixed, state, context = self.begin(source, lengths)
        read = torch.cat([torch.full_like(target[:, :1], BOS), target[:, :-1]], dim=1)
        features, alignment = [], []
        for tokens in read.unbind(1):
            made, state, context, weights = self.step(tokens, state, context, fixed)
            features.append(made)
            alignment.append(weights)
        logits = self.output(torch.stack(features, dim=1))
        return logits, None if self.attention is None else torch.stack(alignment, dim=1)

    def forward(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        """Score every target token, given the true tokens before it."""
        return self.align(source, lengths, target)[0]

    @torch.no_grad()
    def translate(self, source: Tensor, lengths: Tensor, max_length: int = 100) -> Tensor:
        """Return the greedy translation: ids (B, T), filled up with PAD after EOS."""
        fixed, state, context = self.begin(source, lengths)
        tokens = torch.full_like(lengths, BOS)
        written: list[Tensor] = []
        ended = torch.zeros_like(tokens, dtype=torch.bool)
        while len(written) < max_length and not ended.all():
            features, state, context, _ = self.step(tokens, state, context, fixed)
            tokens = self.output(features).argmax(dim=1).masked_fill(ended, PAD)
            written.append(tokens)
            ended = ended | (tokens == EOS)
        return torch.stack(written, dim=1)


def train_one(
    attention: bool,
    bidirectional: bool,
    seed: int,
    steps: int = translators.STEPS,
    asks_after: bool = False,
) -> dict[str, Any]:
    """Train one of the translators that are compared; see `measured_with_frames`.

    returns  with attention also "EOS", the share of the first letters of ones that look most at
             EOS, and "alignment", the weights (T_q, T_k) of `SHOWN`
    """
    torch.manual_seed(seed)
    corpus = numbers()
    layer = Additive(D_STATE, 2 * D_STATE) if attention else None
    model = Compared(sizes_of(corpus), layer, bidirectional, asks_after)
    found = measured_with_frames(model, corpus, seed, steps)
    return found | looks_of(model, corpus) if attention else found


@torch.no_grad()
def looks_of(model: Any, corpus: Corpus) -> dict[str, Any]:
    """How many first letters of ones look at EOS, and the weights of one number."""
    pairs = turned_around(corpus.test)
    batch = corpus.batch(pairs)
    with one_thread():
        weights = model.align(batch.source, batch.lengths, batch.target)[1]  # (B, T_q, T_k)
    firsts = torch.tensor([parts[0][1] for parts in frames(pairs)])
    best = weights[torch.arange(len(pairs)), firsts].argmax(dim=1)  # (B,)
    row = [pair[0] for pair in pairs].index(SHOWN)
    letters, words = len(pairs[row][2]) + 1, batch.lengths[row]
    return {
        "EOS": round((best == batch.lengths - 1).double().mean().item(), 3),
        "alignment": (100 * weights[row, :letters, :words].double()).round().div(100).tolist(),
    }


def sizes_of(corpus: Corpus) -> tuple[int, int]:
    """Return the sizes of both vocabularies."""
    return len(corpus.source_vocabulary), len(corpus.target_vocabulary)


def measured_with_frames(
    model: Any,
    corpus: Corpus,
    seed: int,
    steps: int,
    rate: float = translators.LEARNING_RATE,
) -> dict[str, Any]:
    """Train and measure as `measured` does; with attention also the shares of `in_their_frames`."""
    found = measured(model, corpus, seed, steps, rate)
    return found if model.attention is None else found | in_their_frames(model, corpus)


def turned_around(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs whose last two digits German turns around: 21 to 99, and not 30, 40, …"""
    return [pair for pair in pairs if pair[0] % 100 > 20 and pair[0] % 10]


def frames(pairs: Sequence[Pair]) -> list[list[tuple[str, int, int, int]]]:
    """Say which letters translate the tens, and which the ones and "und", of pairs turned around.

    returns  for each pair two tuples: "ones" or "tens", the index of the first letter, the index
             after the last letter, the index of the English word
    """
    found = []
    for number, english, german in pairs:
        words, tens = len(english.split()), german.rindex("und") + 3
        ones = len(german) - len(in_words(number % 100, "de"))
        parts = [("ones", ones, tens, words - 1), ("tens", tens, len(german), words - 2)]
        found.append(parts)
    return found


@torch.no_grad()
def in_their_frames(model: Any, corpus: Corpus) -> dict[str, float]:
    """Say how many letters look most at the word that they translate, where German turns around.

    returns  shares of the letters of all test numbers of `turned_around`: "ones" (with "und"),
             "tens"; and of their first letters only: "first of ones", "first of tens"
    """
    pairs = turned_around(corpus.test)
    batch = corpus.batch(pairs)
    with one_thread():
        weights = model.align(batch.source, batch.lengths, batch.target)[1]  # (B, T_q, T_k)
    hits: dict[str, list[bool]] = {"ones": [], "tens": [], "first of ones": [], "first of tens": []}
    for best, parts in zip(weights.argmax(dim=2).tolist(), frames(pairs), strict=True):
        for part, first, end, word in parts:
            found = [best[letter] == word for letter in range(first, end)]
            hits[part] += found
            hits[f"first of {part}"].append(found[0])
    return {part: round(sum(found) / len(found), 3) for part, found in hits.items()}


def wanted_and_written(model: Any, corpus: Corpus, digits: Sequence[int] = (3, 5, 6)) -> list[str]:
    """Print a test number of each length beside its translation; returns the translations."""
    pairs = [corpus.test_by_digits(at_most=1)[length][0] for length in digits]
    written = translators.translations(model, corpus, pairs)
    for (number, english, german), text in zip(pairs, written, strict=True):
        print(f"{number}  {english}\n   wanted  {german}\n   wrote   {text[:70]}")
    return written


def one_hidden_feature(
    additive_scores: Callable[..., Tensor], masked_softmax: Callable[..., Tensor]
) -> Any:
    """Draw scores and weights of three queries, -2, 0 and 2, on 33 keys from -4 to 4.

    There is a single hidden feature: W_q = W_k = 1 and v = 3.
    """
    k = torch.linspace(-4, 4, 33).view(1, -1, 1)  # (B, T_k, d_k)
    q = torch.tensor([-2.0, 0.0, 2.0]).view(1, -1, 1)  # (B, T_q, d_q)
    one = torch.ones(1, 1)
    scores = additive_scores(q, k, one, one, torch.tensor([3.0]))
    axes = plots.panels(1, 2, width=3.9, height=2.6, share=False)
    shown = {"score": scores, "weight": masked_softmax(scores, torch.tensor([33]))}
    for ax, (name, rows) in zip(axes, shown.items(), strict=True):
        named = {f"query {one:g}": row for one, row in zip(q.flatten(), rows[0], strict=True)}
        plots.lines(k.flatten(), named, ax, xlabel="key", ylabel=name)
    axes[0].get_legend().remove()
    return axes


FACTORS = {
    "attention, both directions": {"attention": True, "bidirectional": True},
    "attention, forward only": {"attention": True, "bidirectional": False},
    "one vector, both directions": {"attention": False, "bidirectional": True},
    "one vector, forward only": {"attention": False, "bidirectional": False},
}


def one_factor_at_a_time() -> dict[str, int]:
    """Draw recorded translators with and without attention, with and without a backward RNN.

    Kept: data, 300 steps, decoder, 128 numbers an annotation (from two RNNs of 64 or one of 128).
    `train_one` trains any of them.

    returns  label → how many runs translate more than half of the six-digit numbers
    """
    rows = seeds.where(recorded.read("bahdanau_attention", "attention x bidirectional"), steps=300)
    runs = {label: seeds.where(rows, **setting) for label, setting in FACTORS.items()}
    for ax, digits in zip(plots.panels(1, 2, width=4.6, height=2.2), (5, 6), strict=True):
        shares = seeds.dots_at_digits(runs, digits, ax)
        for label, some in shares.items():
            print(f"{digits} digits  {label:<28}", *(f"{share:5.2f}" for share in some))
    for label, found in runs.items():
        print(f"{label:<28} {found[0]['parameters']:>7,} parameters")
    return {label: sum(share > 0.5 for share in some) for label, some in shares.items()}


@torch.no_grad()
def _look_back(model: Any, batch: Batch, believed: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Logits and weights of a translator of lesson 03; ``believed`` lengths go to its attention."""
    lengths = batch.lengths if believed is None else believed
    encoded = model.encode(batch.source, batch.lengths)
    found: tuple[Tensor, Tensor] = model.look_back(*encoded, lengths, batch.target)
    return found


def _draw_alignment(weights: Tensor, english: str, german: str, ax: Axes, colorbar: bool) -> None:
    """Letters down, words across, a dot at the largest weight of each letter."""
    plots.heatmap(weights, ax, "", [*german, "EOS"], [*english.split(), "EOS"], colorbar=colorbar)
    best = weights.argmax(dim=1)
    ax.plot(best, range(len(best)), "o", color=plots.BLACK, markersize=3.5, mec="white")
    ax.set(ylabel="")
    ax.xaxis.tick_top()
    for label in ax.get_xticklabels():
        label.set(rotation=60, ha="left", rotation_mode="anchor")


def alignments(model: Any, corpus: Corpus) -> Any:
    """Draw a translator's alignment of 74, and two recorded ones of 931: both directions, and one.

    A dot marks the largest weight of each letter, frames the ones and the tens. Prints, for the six
    recorded runs of each, how many first letters of ones look at their word and at EOS.
    """
    pairs = {pair[0]: pair for pair in corpus.test}
    every = recorded.read("bahdanau_attention", "attention x bidirectional")
    rows = seeds.where(every, attention=True, steps=300)
    both, forward = (
        torch.tensor(seeds.where(rows, bidirectional=how, seed=0)[0]["alignment"])
        for how in (True, False)
    )
    own = _look_back(model, corpus.batch([pairs[74]]))[1][0]  # (T_q, T_k)
    axes = plots.panels(1, 3, width=3.0, height=6.2, share=False)
    named = {"74": own, f"{SHOWN}, both directions": both, f"{SHOWN}, forward only": forward}
    for ax, (name, weights) in zip(axes, named.items(), strict=True):
        pair = pairs[74 if weights is own else SHOWN]
        _draw_alignment(weights, pair[1], pair[2], ax, colorbar=ax is axes[-1])
        ax.set(xlabel=name)
        for _, first, end, word in frames([pair])[0]:
            plots.mark(ax, (first, end - 1), (word, word))
    print("of the first letters of ones look most, seeds 0 to 5")
    for label, how in (("both directions", True), ("forward only", False)):
        for what, key in (("at their word", "first of ones"), ("at EOS", "EOS")):
            runs = (f"{row[key]:.2f}" for row in seeds.where(rows, bidirectional=how))
            print(f"{label:<16} {what:<14}", *runs)
    return axes


def alignment_of(english: str, model: Any, corpus: Corpus) -> str:
    """Translate an English text, draw where each letter looked, and return the German.

    english  words of numbers in any order, such as "four seventy"; words that the translator does
             not know are left out
    """
    known = [word for word in english.split() if word in corpus.source_vocabulary.ids]
    batch = corpus.batch([(0, " ".join(known), "")])
    written = model.translate(batch.source, batch.lengths)  # (B=1, T_q)
    weights = _look_back(model, Batch(batch.source, batch.lengths, written))[1][0]
    (german,) = translators.texts_of(corpus, written)
    ax: Axes = plots.panels(width=1.6 + 0.55 * len(known), height=1.4 + 0.17 * len(german))
    _draw_alignment(weights[: len(german) + 1], " ".join(known), german, ax, colorbar=True)
    return german


@torch.no_grad()
def needed_words(
    right_without: Callable[..., Sequence[bool]], model: Any, corpus: Corpus, count: int = 150
) -> dict[str, dict[str, float]]:
    """Print and return how many letters look at their word, and how many are right without it.

    The letters are those of numbers from `turned_around`, ``count`` of them, without "und".

    returns  for "first letters" and "later letters" shares: those that "look" most at their word,
             that are right "with" it, "without" it, and without the "other" word of most weight
    """
    every = turned_around(corpus.test)
    found: dict[str, list[list[bool]]] = {"first letters": [], "later letters": []}
    for pair in random.Random(0).sample(every, fewer(count)):
        batch = corpus.batch([pair])
        logits, weights = _look_back(model, batch)
        best, (parts,) = weights[0].argmax(dim=1), frames([pair])
        own, others = best.clone(), weights[0].clone()
        later: dict[int, bool] = {}
        for part, first, end, word in parts:
            letters = range(first, end - 3 * (part == "ones"))
            own[first:end] = word
            later |= {letter: letter > first for letter in letters}
        others[torch.arange(len(own)), own] = 0
        columns = [
            (best == own).tolist(),
            (logits[0].argmax(dim=1) == batch.target[0]).tolist(),
            right_without(model, batch.source, batch.target, own.tolist()),
            right_without(model, batch.source, batch.target, others.argmax(dim=1).tolist()),
        ]
        for letter, is_later in later.items():
            name = "later letters" if is_later else "first letters"
            found[name].append([bool(column[letter]) for column in columns])
    shares = {}
    for name, rows in found.items():
        means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        shares[name] = dict(zip(("look", "with", "without", "other"), means, strict=True))
        print(f"{name}: look most at their word {means[0]:.2f}   right {means[1]:.2f}", end="   ")
        print(f"without their word {means[2]:.2f}, without another {means[3]:.2f}")
    return shares


def without_a_mask(model: Any, corpus: Corpus) -> dict[int, float]:
    """Print what two-digit numbers lose when attention takes padding for words.

    Their batch gets one companion of 2, 4 or 6 digits: the longer it is, the more padding. Model
    and numbers are kept, and packing has set the annotations of padding to 0.

    returns  digits of the companion → loss of the two-digit numbers without a mask
    """
    few, losses = [pair for pair in corpus.test if 20 < pair[0] < 100], {}
    for digits in (2, 4, 6):
        batch = corpus.batch(few + corpus.test_by_digits(1)[digits])
        target, longest = batch.target[:-1], batch.source.shape[1]
        padding = torch.arange(longest) >= batch.lengths[:-1, None, None]  # (B-1, 1, T_k)
        everything = torch.full_like(batch.lengths, longest)
        for name, believed in (("masked", batch.lengths), ("no mask", everything)):
            logits, weights = _look_back(model, batch, believed)
            losses[digits] = masked_cross_entropy(logits[:-1], target).item()
            wasted = (weights[:-1] * padding).sum(dim=2)[target != PAD].mean().item()
            print(f"beside {digits} digits, {name:<8} on padding {wasted:.2f}", end="  ")
            print(f"loss {losses[digits]:.4f}")
    return losses


SEEDS = (0, 1, 2)
SIX = (0, 1, 2, 3, 4, 5)
SHORT = {"attention": True, "bidirectional": True, "seed": 0, "steps": 20}

EXPERIMENTS = {
    "attention x bidirectional": Experiment(
        points=[
            {"attention": attention, "bidirectional": bidirectional, "seed": seed, "steps": 300}
            for attention, some in ((True, SIX), (False, SEEDS))
            for bidirectional in (True, False)
            for seed in some
        ]
        + [SHORT],
        run=train_one,
        again=SHORT,
    ),
    "query after reading": Experiment(
        points=[
            {"attention": True, "bidirectional": True, "seed": seed, "steps": 300}
            | {"asks_after": True}
            for seed in SEEDS
        ]
        + [SHORT | {"asks_after": True}],
        run=train_one,
        again=SHORT | {"asks_after": True},
    ),
}
