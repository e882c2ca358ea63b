"""The translator of numbers from lesson 02 to lesson 10, as each lesson changes one thing in it.

`train_stage` trains one stage: numbers of one to nine digits, 300 steps of 64, the learning rate
of lessons 02, 03 and 10. With six digits, as in those lessons, most stages are nearly always right,
and nothing tells them apart. `up_to` shows all stages up to a lesson. The pieces of the lessons are
arguments. Lesson 07 goes on from 05, where padding is hidden.
"""

import itertools
import math
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments import recorded
from attention.experiments.bahdanau_attention import D_STATE, Compared, sizes_of
from attention.experiments.recorded import Experiment, seeded
from attention.experiments.sequence_to_sequence import measured, trained
from attention.provided.data.numbers import Corpus, numbers
from attention.provided.figures import plots, seeds
from attention.provided.models import translators
from attention.provided.training_steps import fewer

SEEDS = (0, 1, 2)
DIGITS = 9  # of the longest numbers in training
SHOWN = (7, 8, 9)
N_HEADS, D_FF, N_LAYERS = 4, 128, 2
FIRST = 20  # steps that are taken with a learner's own piece
TOLERANCE = 1e-3  # of their losses: processors round differently

Piece = Callable[..., Any]


class Looks(nn.Module):
    """Attention of a decoder's state on the source, by projections of its own.

    attend   (q, k, v, mask) -> context, for (B, T, 64) each and a mask (B, 1, T_k) or None
    masked   whether the padding of shorter sentences is hidden
    of       which of queries, keys and values have a matrix
    divided  whether scores stay divided by √64
    """

    def __init__(
        self, attend: Piece, masked: bool = True, of: str = "qkv", divided: bool = True
    ) -> None:
        super().__init__()
        self.attend, self.masked = attend, masked
        self.factor = 1.0 if divided else math.sqrt(D_STATE)  # of the divided scores
        made = {role: nn.Linear(D_STATE, D_STATE, bias=False) for role in "qkv"}  # same start
        self.W_q, self.W_k, self.W_v = (
            made[role] if role in of else nn.Identity() for role in "qkv"
        )

    def keys(self, annotations: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values, (B, T_k, 64) each."""
        return self.W_k(annotations), self.W_v(annotations)

    def forward(self, state: Tensor, keys: Any, annotations: Tensor, lengths: Tensor) -> Any:
        """Return the context (B, 1, 64) of a state (B, 1, 64); the weights are not needed here."""
        mask = _real(annotations, lengths) if self.masked else None
        return self.attend(self.factor * self.W_q(state), *keys, mask), state


class ManyLook(nn.Module):
    """The same with several heads: ``heads`` is a `MultiHeadAttention` of lesson 07."""

    def __init__(self, heads: nn.Module):
        super().__init__()
        self.heads = heads

    def keys(self, annotations: Tensor) -> Tensor:
        """Return the annotations: the layer projects them itself."""
        return annotations

    def forward(self, state: Tensor, keys: Tensor, annotations: Tensor, lengths: Tensor) -> Any:
        """Return the context (B, 1, 64) of a state (B, 1, 64)."""
        return self.heads(state, keys, keys, _real(annotations, lengths)), state


class WithoutRecurrence(Compared):
    """A translator whose encoder has no RNN: rows of a table, their positions, and layers.

    positions  (positions, d_model) -> (T, d_model)
    layers     what the rows go through, called as layer(x, mask)
    """

    def __init__(
        self,
        sizes: tuple[int, int],
        attention: nn.Module,
        positions: Any,
        layers: list[nn.Module],
    ):
        super().__init__(sizes, attention, d_source=D_STATE)
        del self.encoder
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(D_STATE) if layers else nn.Identity()
        self.positions = positions
        self.source_embedding = nn.Embedding(sizes[0], D_STATE)
        nn.init.normal_(self.source_embedding.weight, std=D_STATE**-0.5)

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return the annotations (B, T_k, 64), and their mean (B, 64) for the first state."""
        x = math.sqrt(D_STATE) * self.source_embedding(source)  # (B, T_k, 64)
        x = x + self.positions(torch.arange(source.shape[1], dtype=x.dtype), D_STATE)
        mask = _real(x, lengths)  # (B, 1, T_k)
        for layer in self.layers:
            x = layer(x, mask)
        x = self.norm(x)
        return x, (mask.to(x.dtype) @ x)[:, 0] / lengths[:, None]


def _real(annotations: Tensor, lengths: Tensor) -> Tensor:
    """Where a token is and no padding: (B, 1, T_k)."""
    return torch.arange(annotations.shape[1]).lt(lengths[:, None])[:, None]


def build(
    stage: str,
    corpus: Corpus,
    scaled_dot_product_attention: Piece = F.scaled_dot_product_attention,
    MultiHeadAttention: Piece | None = None,
    sinusoidal_positions: Piece | None = None,
    EncoderLayer: Piece | None = None,
    Seq2Seq: Piece | None = None,
    Transformer: Piece | None = None,
) -> nn.Module:
    """Make the untrained translator of a stage out of the lessons' pieces; see `STAGES`."""
    sizes = sizes_of(corpus)
    if stage == "02":
        return _made(Seq2Seq, *sizes)
    if stage == "10":
        return _made(Transformer, *sizes, **translators.SMALL)
    if stage in ("05", "06 no mask"):
        looks = Looks(scaled_dot_product_attention, masked=stage == "05")
        return Compared(sizes, looks, d_source=D_STATE)
    n_heads = 1 if stage == "07 one head" else N_HEADS
    many = ManyLook(_made(MultiHeadAttention, D_STATE, n_heads))
    if stage[:2] == "07":
        return Compared(sizes, many, d_source=D_STATE)
    layers = N_LAYERS if stage == "09" else 0
    blocks = [_made(EncoderLayer, D_STATE, N_HEADS, D_FF, 0.0, True) for _ in range(layers)]
    return WithoutRecurrence(sizes, many, sinusoidal_positions, blocks)


def _made(kind: Piece | None, *sizes: Any, **options: Any) -> nn.Module:
    """One layer or model of a piece that this stage needs."""
    if kind is None:
        raise TypeError("this stage needs pieces that are not given: see `train_stage`")
    made: nn.Module = kind(*sizes, **options)
    return made


def train_stage(
    stage: str,
    seed: int,
    scaled_dot_product_attention: Piece,
    MultiHeadAttention: Piece,
    sinusoidal_positions: Piece,
    EncoderLayer: Piece,
    Seq2Seq: Piece,
    Transformer: Piece,
    steps: int = translators.STEPS,
    digits: int = DIGITS,
) -> dict[str, Any]:
    """Train the translator of a stage; returns what `measured` does, and its first losses.

    digits  of the longest numbers to train on and to test with
    """
    torch.manual_seed(seed)
    pieces = {
        "scaled_dot_product_attention": scaled_dot_product_attention,
        "MultiHeadAttention": MultiHeadAttention,
        "sinusoidal_positions": sinusoidal_positions,
        "EncoderLayer": EncoderLayer,
        "Seq2Seq": Seq2Seq,
        "Transformer": Transformer,
    }
    corpus = numbers(digits=digits)
    found = measured(build(stage, corpus, **pieces), corpus, seed, steps)
    first = first_losses(stage, seed, corpus, **pieces)
    return found | {"first": [round(loss, 5) for loss in first]}


def train_with(
    matrices: str,
    divided: bool,
    seed: int,
    scaled_dot_product_attention: Piece,
    rate: float = 1.0,
    steps: int = translators.STEPS,
) -> dict[str, Any]:
    """Train the translator of lesson 05, or one with fewer matrices; returns what `measured` does.

    matrices  which of "q", "k" and "v" have one
    divided   whether the scores are divided by √64
    rate      the learning rate of W_q and W_k is multiplied by it
    """
    torch.manual_seed(seed)
    looks = Looks(scaled_dot_product_attention, of=matrices, divided=divided)
    # Adam's steps do not grow with the weights: what is trained is W / rate, and used times rate.
    looks.factor *= rate**2
    with torch.no_grad():
        for weights in (*looks.W_q.parameters(), *looks.W_k.parameters()):
            weights.div_(rate)
    model = Compared(sizes_of(numbers()), looks, d_source=D_STATE)
    return measured(model, numbers(), seed, steps)


def train_and_choose_companions(
    stage: str, seed: int, scaled_dot_product_attention: Piece, steps: int = translators.STEPS
) -> dict[str, Any]:
    """Train the translator of "05" or "06 no mask"; what `measured` says, by the batch of the test.

    returns  besides, in "alone" and "beside a long one", the accuracy of the same numbers in
             batches without padding, and padded to the length of the longest source
    """
    torch.manual_seed(seed)
    corpus = numbers()
    model = build(stage, corpus, scaled_dot_product_attention)
    found = measured(model, corpus, seed, steps)
    longest = max(corpus.test, key=lambda pair: len(pair[1].split()))
    alone, beside = list[float](), list[float]()
    for digits in found["digits"]:
        pairs = corpus.test_by_digits(fewer(100, 10))[digits]
        words = [len(pair[1].split()) for pair in pairs]
        equal = [[p for p, n in zip(pairs, words, strict=True) if n == m] for m in {*words}]
        alone.append(_right(model, [(some, some) for some in equal]))
        beside.append(_right(model, [([*pairs, longest], pairs)]))
    return found | {"alone": alone, "beside a long one": beside}


def _right(model: nn.Module, batches: list[Any]) -> float:
    """Share of numbers right: of each batch (what is translated, what of it counts)."""
    said = [translators.translations(model, numbers(), batch)[: len(of)] for batch, of in batches]
    wanted = [german for _, of in batches for _, _, german in of]
    return round(translators.share_right(list(itertools.chain(*said)), wanted), 3)


def first_losses(stage: str, seed: int, corpus: Corpus, **pieces: Piece) -> list[float]:
    """The losses of the first 20 of 300 steps with these pieces."""
    torch.manual_seed(seed)
    model = build(stage, corpus, **pieces)
    batches = corpus.batches(translators.BATCH, translators.STEPS, seed)
    some = itertools.islice(batches, FIRST)
    return trained(model, some, translators.STEPS)


def up_to(lesson: str, **pieces: Piece) -> Any:
    """Draw as a table which numbers the translators up to a lesson get right, three runs of each.

    lesson  "05" to "10"
    pieces  functions and classes of which this lesson's stage is built, the learner's own among
            them, by the names that `build` gives them: the stage takes its first 20 steps with
            them, and the losses are compared with those that the library's pieces gave

    Same data, same 300 steps, same rate; a stage's name says what changes. Recorded, seeds 0 to 2.
    To train a stage in full, a minute on one core: `train_stage`.
    """
    rows = recorded.read("translator_so_far", "stages")
    shown = {stage: name for stage, name in STAGES.items() if stage <= lesson}
    runs = [seeds.where(rows, stage=stage, steps=None) for stage in shown]
    table = [[seeds.at_digits(some, digits) for digits in SHOWN] for some in runs]
    ax = plots.panels(width=7.2, height=0.6 + 0.33 * len(shown))
    middle = [[median(shares) for shares in row] for row in table]
    names = [f"{digits} digits" for digits in SHOWN]
    plots.heatmap(middle, ax, queries=list(shown.values()), keys=names, colorbar=False)
    for y, x in itertools.product(range(len(table)), range(len(SHOWN))):
        text = "   ".join(f"{share:.2f}" for share in table[y][x])
        colour = "white" if middle[y][x] > 0.55 else plots.BLACK
        ax.text(x, y, text, ha="center", va="center", color=colour, fontsize=9)
    plots.mark(ax, (len(shown) - 1, len(shown) - 1), (0, len(SHOWN) - 1))
    ax.get_yticklabels()[-1].set(color=plots.VERMILION, fontweight="bold")
    ax.xaxis.tick_top()
    ax.set(xlabel="", ylabel="")
    if pieces and fewer(FIRST) == FIRST:
        _compare_first_steps(lesson, pieces)
    return ax


def _compare_first_steps(stage: str, pieces: dict[str, Piece]) -> None:
    """Train a few steps with a learner's pieces, and say how far off the recorded ones they are."""
    rows = recorded.read("translator_so_far", "stages")
    kept = seeds.where(rows, stage=stage, seed=0, steps=None)[0]
    losses = first_losses(stage, 0, numbers(digits=DIGITS), **pieces)
    apart = max(abs(one - two) for one, two in zip(losses, kept["first"], strict=False))
    verdict = "the same" if apart < TOLERANCE else "not the same"
    print(
        f"The first {FIRST} steps with these pieces: loss {losses[0]:.3f} to {losses[-1]:.3f}, "
        f"{verdict} as recorded (largest difference {apart:.1e})."
    )


def matrices_and_division() -> str:
    """Draw what the translators of `train_with` get right, and lesson 04's without a matrix.

    Changed: which of queries, keys and values have a matrix, the division, the rate of W_q and W_k.
    Kept: the rest of the translator, data, 300 steps, all other rates.
    returns  "helps" if with W_q and W_k the worst divided run beats the undivided ones' median
    """
    scored = seeds.where(recorded.read("score_functions", "five score functions"), steps=300)
    rows = recorded.read("scaled_dot_product_attention", "matrices and division")
    runs = {
        "no matrix": seeds.where(scored, kind="dot"),
        "no matrix, divided": seeds.where(scored, kind="scaled_dot"),
    }
    for name, matrices, rate in (
        ("W_q, W_k", "qk", None),
        ("W_q, W_k at an eighth of the rate", "qk", 0.125),
        ("W_q, W_k, W_v", "qkv", None),
    ):
        some = seeds.where(rows, matrices=matrices, rate=rate, steps=None)
        for divided in sorted({row["divided"] for row in some}):
            runs[name + ", divided" * divided] = seeds.where(some, divided=divided)
    for ax, digits in zip(plots.panels(1, 2, width=3.6, height=2.6), (5, 6), strict=True):
        at = seeds.dots_at_digits(runs, digits, ax)
        for line, name in zip(ax.lines, runs, strict=True):
            line.set_color(plots.BLUE if "divided" in name else plots.VERMILION)
        for name in list(runs)[2:5] if digits == 5 else ():  # to be compared seed by seed
            print(f"5 digits  {name:<33}", *(f"{share:5.2f}" for share in at[name]))
    helps = min(at["W_q, W_k, divided"]) > median(at["W_q, W_k"])
    return "helps" if helps else "hurts"


STAGES = {
    "02": "02 one vector",
    "05": "05 scaled dot product, W_q, W_k, W_v",
    "07": "07 four heads",
    "08": "08 rows and positions, no RNN reads",
    "09": "09 two blocks read",
    "10": "10 blocks write, too",
}
SHORT = {"stage": "05", "seed": 0, "steps": 20, "digits": 6}

EXPERIMENTS = {
    "stages": Experiment(
        points=[point for stage in STAGES for point in seeded(SEEDS, stage=stage)] + [SHORT],
        run=train_stage,
        again=SHORT,
    ),
}
