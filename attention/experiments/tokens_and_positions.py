"""Lesson 08: what positions are good for, what the root does, and what a tokeniser learns from.

In the task for positions one layer of attention says the token three places before each token.
"""

import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch
from matplotlib.axes import Axes
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.recorded import Experiment, read, seeded
from attention.provided.data.numbers import in_words
from attention.provided.data.words import count_words, docstrings
from attention.provided.figures import plots, seeds
from attention.provided.training_steps import take_steps

ANSWERS = "tokens_and_positions"  # the lesson whose exercises this would answer

SEEDS = (0, 1, 2)
FEW = 50  # texts kept aside of each kind: docstrings, or ten numbers each
BACK, TOKENS, D_MODEL = 3, 16, 64
MOST = 96  # positions that a learned table has
LENGTHS = (12, 24, 48, 96)
SMALL = 1 / math.sqrt(D_MODEL)  # a start of the table that √d_model brings to size 1
KINDS = ("none", "learned", "sinusoidal", "rotary")
DRAWN = ("sinusoidal", "learned", "rotary", "none")  # in the order, and colours, of lesson 10
SENTENCES = ("dog bites man", "man bites dog")
GERMAN = """Ein guter Zerleger kennt die häufigen Wörter und baut die seltenen aus Stücken zusammen.
Wer nur englische Texte gesehen hat, hält jeden deutschen Satz für eine lange Folge von Silben und
Buchstaben. Übrigens geht dabei nichts verloren, auch kein ß und kein Umlaut."""

Positions = Callable[[Tensor, int], Tensor]  # as `sinusoidal_positions`
Merges = list[tuple[int, int]]


def clocks(first: int, T: int) -> Tensor:
    """The hands of the clocks at T positions from ``first`` on: complex numbers of size 1,
    (T, D_MODEL / 2)."""
    speeds = torch.logspace(0, -4, D_MODEL // 2 + 1)[:-1]
    angles = torch.outer(torch.arange(first, first + T, dtype=speeds.dtype), speeds)
    return torch.polar(torch.ones_like(angles), angles)


def turned(x: Tensor, hands: Tensor) -> Tensor:
    """Turn each pair of features of (B, T, D_MODEL) by the clocks (T, D_MODEL / 2)."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * hands).flatten(-2)


class LooksBack(nn.Module):
    """One head of attention over embedded tokens, and a linear read-out.

    kind   "sinusoidal" or "learned" positions, added to the rows; "rotary"; or "none"
    root   whether the rows of the table are multiplied by √d_model
    start  standard deviation of the table before training

    Raises ValueError for another kind.
    """

    def __init__(self, kind: str, root: bool = True, start: float = SMALL):
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is none of {', '.join(KINDS)}")
        self.kind, self.factor = kind, 1 / SMALL if root else 1.0
        self.table = nn.Parameter(start * torch.randn(TOKENS, D_MODEL))
        self.W_q, self.W_k, self.W_v = (nn.Linear(D_MODEL, D_MODEL, bias=False) for _ in range(3))
        self.read_out = nn.Linear(D_MODEL, TOKENS)
        if kind == "learned":
            self.places = nn.Parameter(torch.randn(MOST, D_MODEL) / 50)

    def forward(self, ids: Tensor, first: int = 0) -> Tensor:
        """Score the token at each place: (B, T), which begin at position ``first``, to
        (B, T, TOKENS)."""
        T = ids.shape[1]
        x, hands = self.factor * self.table[ids], clocks(first, T)
        if self.kind == "learned":
            x = x + self.places[first : first + T]
        elif self.kind == "sinusoidal":
            x = x + torch.view_as_real(hands).flip(-1).flatten(-2)  # sines first
        q, k = self.W_q(x), self.W_k(x)
        if self.kind == "rotary":
            q, k = turned(q, hands), turned(k, hands)
        weights = (q @ k.mT / math.sqrt(D_MODEL)).softmax(dim=-1)  # (B, T, T)
        scores: Tensor = self.read_out(weights @ self.W_v(x))
        return scores


def train_one(
    kind: str,
    seed: int,
    length: int = 24,
    steps: int = 300,
    random_start: bool = False,
    back: int | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Train on random tokens, then count what is right in sequences of several lengths.

    length        T of the sequences in training
    random_start  let each batch begin at a random position instead of at 0
    back          how many places back the token stands; None: BACK
    options       `root` and `start` of `LooksBack`
    returns       "lengths" and "right", lists; "losses": means of ten steps, in nats per token
    """
    back = back or BACK
    torch.manual_seed(seed)
    model = LooksBack(kind, **options)
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.003), []
    for _ in range(steps):
        ids = torch.randint(TOKENS, (32, length))
        first = int(torch.randint(MOST - length + 1, ())) if random_start else 0
        scores = model(ids, first)  # (32, length, TOKENS)
        loss = F.cross_entropy(scores[:, back:].mT, ids[:, :-back])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {
        "lengths": list(LENGTHS),
        "right": [round(_right(model, T, back), 3) for T in LENGTHS],
        "losses": [round(sum(losses[i : i + 10]) / 10, 4) for i in range(0, steps, 10)],
    }


@torch.no_grad()
def _right(model: LooksBack, T: int, back: int) -> float:
    ids = torch.randint(TOKENS, (100, T))
    return (model(ids)[:, back:].argmax(dim=-1) == ids[:, :-back]).double().mean().item()


def train_without_positions(
    n_layers: int, causal: bool, seed: int, steps: int = 600
) -> dict[str, float]:
    """Train Transformer layers of one head, without positions; the share of tokens right at 24."""
    torch.manual_seed(seed)
    kinds: dict[str, Any] = {"batch_first": True, "norm_first": True, "dropout": 0.0}
    layers = [nn.TransformerEncoderLayer(D_MODEL, 1, 128, **kinds) for _ in range(n_layers)]
    model = nn.ModuleList([nn.Embedding(TOKENS, D_MODEL), *layers, nn.Linear(D_MODEL, TOKENS)])
    future = torch.ones(24, 24, dtype=torch.bool).triu(1) if causal else None

    def scores(ids: Tensor) -> Tensor:
        x = model[0](ids)
        for layer in layers:
            x = layer(x, src_mask=future)
        return model[-1](x)[:, BACK:]

    def loss() -> Tensor:
        ids = torch.randint(TOKENS, (32, 24))
        return F.cross_entropy(scores(ids).mT, ids[:, :-BACK])

    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    list(take_steps((loss() for _ in range(steps)), optimizer))
    with torch.no_grad():
        ids = torch.randint(TOKENS, (200, 24))
        right = (scores(ids).argmax(dim=-1) == ids[:, :-BACK]).double().mean().item()
    return {"right": round(right, 3)}


def train_tokeniser(
    learns_from: str,
    seed: int,
    train_bpe: Callable[..., Merges],
    bpe_encode: Callable[..., Any],
    merges: int = 2000,
) -> dict[str, float]:
    """Learn merges from one kind of text, or from both; bytes per token of kept-aside texts."""
    draw = random.Random(seed)
    texts = docstrings(torch, nn, nn.functional, numpy)
    draw.shuffle(texts)
    written = [in_words(n, "de") for n in draw.sample(range(1, 1_000_000), 5000)]
    kept = {"docstrings": texts[:FEW], "numbers": written[: 10 * FEW]}
    rest = {"docstrings": texts[FEW:], "numbers": written[10 * FEW :]}
    rest["both"] = rest["docstrings"] + rest["numbers"]
    learned = train_bpe(*count_words(rest[learns_from]), n_merges=merges)
    result = {}
    for kind, of in kept.items():
        text = "\n".join(of)
        result[kind] = round(len(text.encode()) / len(bpe_encode(text, learned)), 3)
    return result


def farther(kind: str, back: int, seed: int, steps: int = 300) -> dict[str, Any]:
    """Train to say the token so many places back; what is right, and when the loss is below 0.5.

    returns  "right", at 24 tokens, and "steps", the first ten steps with such a mean loss, by
             their last one; 0 if there are none
    """
    found = train_one(kind, seed, steps=steps, back=back)
    below = [10 * (i + 1) for i, loss in enumerate(found["losses"]) if loss < 0.5]
    right = found["right"][found["lengths"].index(24)]
    return {"right": right, "steps": below[0] if below else 0}


def word_order() -> list[float]:
    """Read “dog bites man” and “man bites dog” with one attention layer without positions.

    Only the order of the words differs; the rows of the words and the weights, random, are kept.
    returns  how much a word's context differs between the sentences, at most, for three seeds
    """
    gaps = []
    for seed in SEEDS:
        (one, _), (other, _) = (_read(words.split(), seed) for words in SENTENCES)
        gaps.append((one - other.flip(0)).abs().max().item())  # row i of one is row 2 - i of other
        same = "the same" if gaps[-1] < 1e-5 else "different"
        print(f"random weights {seed}: each word's context is {same} in both sentences")
    return gaps


def _read(words: Sequence[str], seed: int, positions: float | Tensor = 0.0) -> tuple[Tensor, ...]:
    """Attend from each of three words to all; contexts (3, 16) and weights (3, 3)."""
    draw = torch.Generator().manual_seed(seed)
    table = torch.randn(3, 16, generator=draw)
    W_q, W_k = torch.randn(2, 16, 16, generator=draw) / 4
    x = table[[("dog", "bites", "man").index(word) for word in words]] + positions
    weights = ((x @ W_q) @ (x @ W_k).T / 4).softmax(dim=1)
    return weights @ x, weights


def word_order_with(sinusoidal_positions: Positions) -> list[float]:
    """Draw how the words of both sentences attend to each other, without and with positions.

    Words, rows and weights are those of `word_order`, seed 2; the positions are added to the rows.
    returns  how much the context of “dog” differs between the sentences: without, with positions
    """
    axes, gaps = plots.panels(rows=2, columns=2, width=3.4, height=2.3, share=False), []
    P = sinusoidal_positions(torch.arange(3.0), 16)
    for row, name, added in zip(axes, ("without", "with"), (0 * P, P), strict=True):
        dogs = []
        for ax, sentence in zip(row, SENTENCES, strict=True):
            words = sentence.split()
            contexts, weights = _read(words, 2, added)
            dogs.append(contexts[words.index("dog")])
            title = f"{sentence}, {name} positions"
            plots.heatmap(weights, ax, title, words, words, numbers=True, colorbar=False)
            ax.set(xlabel="", ylabel="")
        gaps.append((dogs[0] - dogs[1]).abs().max().item())
        print(f"{name:<7} positions, dog differs by up to {gaps[-1]:.2f}")
    return gaps


def position_table(sinusoidal_positions: Positions) -> list[Axes]:
    """Draw the first 64 positions, 32 columns of each, and dot products of rows t and t + shift."""
    P, shifts = sinusoidal_positions(torch.arange(200.0), 64), torch.arange(-30, 31)
    left, right = plots.panels(columns=2, width=4.6, height=3.2, share=False)
    plots.signed(P[:64, :32], left, "the positions", "column", "position")
    for t in (40, 80, 120):
        right.plot(shifts, P[t + shifts] @ P[t], label=f"t = {t}", linewidth=7 - t / 20)
    right.set(title="dot product of rows t and t + shift", xlabel="shift")
    plots.legend(right)
    return [left, right]


def three_back() -> dict[str, float]:
    """Draw the share of tokens right, trained on 24 or 96 tokens, for four kinds of positions.

    Task, layer, 300 steps and rate are kept. Recorded; `train_one` runs one point live.
    returns  {kind: share right at 96 tokens, trained on 24, mean of three seeds}
    """
    results = read("tokens_and_positions", "three back")
    axes = plots.panels(columns=2, width=4.2, height=3.0)
    for ax, length in zip(axes, (24, 96), strict=True):
        for number, kind in enumerate(DRAWN):
            of = seeds.where(results, kind=kind, length=length)
            mean = torch.tensor([row["right"] for row in of]).mean(dim=0)  # (4,)
            (line,) = ax.plot(LENGTHS, mean, label=kind)
            x = [T * 1.04 ** (number - 1.5) for T in LENGTHS]  # so that no dot hides another
            for row in of:
                ax.plot(x, row["right"], "o", color=line.get_color(), markersize=4)
        ax.set(title=f"trained on {length} tokens", xlabel="tokens in the test", xscale="log")
        ax.set(ylim=(-0.04, 1.06))
        ax.set_xticks(LENGTHS, LENGTHS)
        ax.minorticks_off()
    axes[0].set_ylabel("share right")
    plots.legend(axes[1], fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    short = {kind: seeds.where(results, kind=kind, length=24) for kind in KINDS}
    return {kind: sum(row["right"][-1] for row in of) / len(of) for kind, of in short.items()}


def same_word_elsewhere(embed: Callable[..., Tensor], sinusoidal_positions: Positions) -> None:
    """Draw the cosines between the rows of “a rose is a rose is a rose”, with √d_model and without.

    The table, random with standard deviation 1/√256, and the positions are kept.
    """
    rose, d_model = ["a", "rose", "is", "a", "rose", "is", "a", "rose"], 256
    ids = torch.tensor([("a", "rose", "is").index(word) for word in rose])
    draw = torch.Generator().manual_seed(0)
    table = torch.randn(3, d_model, generator=draw) / math.sqrt(d_model)
    P = sinusoidal_positions(torch.arange(8.0), d_model)
    axes = plots.panels(columns=2, width=3.9, height=3.3)
    drawn = (("with √d_model", embed(ids, table)), ("without", table[ids]))
    for ax, (name, x) in zip(axes, drawn, strict=True):
        rows = F.normalize(x + P, dim=1)
        plots.signed(rows @ rows.T, ax, name)
        ax.set_xticks(range(8), rose, rotation=60)
        ax.set_yticks(range(8), rose)
        size = P.square().mean() ** 0.5
        print(f"{name:<14} size of a number: token {x.std():.2f}, position {size:.2f}")


def size_of_the_rows() -> Axes:
    """Draw the loss in the task of `three_back` for rows of several sizes at the start.

    Varied: the factor √d_model, and whether the table starts at 1/√d_model or at 1. Sinusoidal
    positions, task, layer, steps and rate are kept. Recorded; `train_one` runs one point live.
    """
    named: dict[str, list[list[float]]] = {}
    for row in read("tokens_and_positions", "root"):
        size = row["start"] * (math.sqrt(D_MODEL) if row["root"] else 1)
        label = f"table {row['start']:g}, {'root' if row['root'] else 'no root'}: rows {size:g}"
        named.setdefault(label, []).append(row["losses"])
    ax = seeds.curves(named, range(5, 300, 10), plots.panels(width=6.0, height=3.0))
    ax.set(xlabel="step", ylabel="nats per token", yscale="log")
    plots.legend(ax, fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    for label, runs in named.items():
        print(f"{label:<34} at the end:", *(f"{losses[-1]:.4f}" for losses in runs))
    return ax


def scores_by_position(
    rotary: Callable[[Tensor, Tensor], Tensor], sinusoidal_positions: Positions
) -> dict[str, float]:
    """Draw the scores of one query and one key at all positions from 0 to 31.

    “rotary” turns both vectors, “added” adds sinusoids to both; the vectors, random, are kept.
    returns  {kind: spread along a diagonal, at most, of three pairs}; the figure shows pair 1
    """
    T, d_head = 32, 64
    positions = torch.arange(float(T))
    P, axes = (
        sinusoidal_positions(positions, d_head),
        plots.panels(columns=2, width=4.0, height=3.3),
    )
    spreads = {"rotary": 0.0, "added": 0.0}
    for seed in SEEDS:
        draw = torch.Generator().manual_seed(seed)
        q, k = torch.randn(2, 1, d_head, generator=draw).expand(2, T, d_head)
        turned = rotary(q, positions) @ rotary(k, positions).T  # (T, T)
        for ax, name, scores in zip(axes, spreads, (turned, (q + P) @ (k + P).T), strict=True):
            if seed == 1:
                plots.signed(
                    scores, ax, name, "position n of the key", "position m of the query", 40
                )
            found = max(scores.diagonal(offset).std().item() for offset in range(-20, 21))
            spreads[name] = max(spreads[name], found)
            print(f"{name:<7} pair {seed}: spread along a diagonal {found:.3f} at most")
    return spreads


def bytes_per_token(
    held_out: str,
    merges: Merges,
    bpe_encode: Callable[[str, Merges], list[int]],
    bpe_decode: Callable[[list[int], Merges], str],
) -> dict[str, float]:
    """Draw how many bytes a token stands for, against the number of merges used; print some tokens.

    The merges, learned from docstrings, are kept; read are docstrings kept aside and a German text.
    returns  {text: bytes per token with all merges}
    """
    for first in (0, 100, 1990):
        some = range(first, min(first + 9, len(merges)))
        print(f"merge {first:4} on:", *(repr(bpe_decode([256 + r], merges)) for r in some))
    fewer = [n for n in (0, 10, 30, 100, 200, 500, 1000, 1500) if n < len(merges)]
    used, curves = [*fewer, len(merges)], {}
    for name, text in {"docstrings, kept aside": held_out, "German": GERMAN}.items():
        size = len(text.encode("utf-8"))
        curves[name] = [size / len(bpe_encode(text, merges[:n])) for n in used]
        print(f"{name:<23} {curves[name][-1]:.2f} bytes per token after {used[-1]} merges")
    plots.lines(used, curves, xlabel="merges", ylabel="bytes per token")
    return {name: curve[-1] for name, curve in curves.items()}


def whose_merges() -> None:
    """Print bytes per token of two kinds of text, by the kind that the merges were learned from.

    2000 merges each; three draws of the texts that are kept aside. Recorded.
    """
    results, kinds = read("tokens_and_positions", "whose merges"), ("docstrings", "numbers")
    print(f"{'bytes per token of':>35}{'docstrings':>22}{'|':>4}{'German numbers':>22}")
    for source in (*kinds, "both"):
        found = seeds.where(results, learns_from=source)
        cells = ("   ".join(f"{row[of]:5.2f}" for row in found) for of in kinds)
        print(f"merges learned from {source:<12}", "   |".join(cells), sep="   ")


def german_compounds(
    merges: Merges,
    train_bpe: Callable[..., Merges],
    bpe_encode: Callable[[str, Merges], list[int]],
    bpe_decode: Callable[[list[int], Merges], str],
) -> None:
    """Draw three German words, cut by three tokenisers.

    Two learn from the numbers 1 to 999 in words, 28 merges or 60; the third is ``merges``.
    """
    numbers = count_words(in_words(n, "de") for n in range(1, 1000))
    known = {f"numbers, {n}": train_bpe(*numbers, n_merges=n) for n in (28, 60)}
    known[f"docstrings, {len(merges)}"] = merges
    axes = plots.panels(rows=3, width=9, height=1.5, share=False)
    for ax, word in zip(
        axes, (in_words(231, "de"), in_words(717, "de"), "Donaudampfschifffahrt"), strict=True
    ):
        rows = {}
        for name, learned in known.items():
            ids = bpe_encode(word, learned)
            rows[f"{name} merges: {len(ids)} tokens"] = [bpe_decode([i], learned) for i in ids]
        plots.tokens(rows, ax).set(title=word)


EXPERIMENTS = {
    "whose merges": Experiment(
        points=[
            point
            for kind in ("docstrings", "numbers", "both")
            for point in seeded(SEEDS, learns_from=kind)
        ],
        run=train_tokeniser,
        again={"learns_from": "docstrings", "seed": 0},
    ),
    "three back": Experiment(
        points=[
            point
            for length in (24, 96)
            for kind in KINDS
            for point in seeded(SEEDS, kind=kind, length=length)
        ],
        run=train_one,
        again={"kind": "sinusoidal", "length": 24, "seed": 0},
    ),
    "three back for longer": Experiment(
        points=seeded(SEEDS, kind="learned", length=96, steps=900),
        run=train_one,
        again=None,
    ),
    "random start": Experiment(
        points=[
            point
            for kind, steps in (("learned", 300), ("learned", 900), ("sinusoidal", 300))
            for point in seeded(SEEDS, kind=kind, steps=steps, random_start=True)
        ],
        run=train_one,
        again={"kind": "learned", "steps": 300, "random_start": True, "seed": 0},
    ),
    "no positions, causal": Experiment(
        points=[
            point
            for n_layers, causal in ((2, True), (1, True), (2, False))
            for point in seeded(SEEDS, n_layers=n_layers, causal=causal)
        ],
        run=train_without_positions,
        again=None,
    ),
    "root": Experiment(
        points=[
            point
            for start, root in (*itertools.product((SMALL, 1.0), (True, False)), (8.0, False))
            for point in seeded(SEEDS, kind="sinusoidal", root=root, start=start)
        ],
        run=train_one,
        again={"kind": "sinusoidal", "root": False, "start": 1.0, "seed": 0},
    ),
}
ANSWERS_TO_QUESTIONS = {
    "08 farther back": Experiment(
        points=[
            point
            for kind in ("learned", "sinusoidal", "rotary")
            for back in (1, 3, 10)
            for point in seeded(SEEDS, kind=kind, back=back)
        ],
        run=farther,
        again={"kind": "rotary", "back": 10, "seed": 0},
    ),
}
