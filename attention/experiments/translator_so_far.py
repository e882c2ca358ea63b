"""The translator of numbers from lesson 02 to lesson 10, as each lesson changes one thing in it.

`train_stage` trains one stage: the same 20 000 numbers, the same 300 steps of 64, the same learning
rate as in lessons 02, 03, 04 and 10, whose recorded results stand beside the stages here.
`up_to` draws all stages up to a lesson. The pieces of the lessons are arguments. A stage's name
says all that is not as in the one before; lesson 07 goes on from 05, where padding is hidden.
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
from attention.provided.data.numbers import numbers
from attention.provided.figures import plots, seeds
from attention.provided.models import translators
from attention.provided.training_steps import fewer

SEEDS = (0, 1, 2)
DIGITS = (2, 3, 4, 5, 6)
DRAWN = (3, 5, 6)
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
        self.attend, self.masked, self.divided = attend, masked, divided
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
        q = self.W_q(state) if self.divided else math.sqrt(D_STATE) * self.W_q(state)
        return self.attend(q, *keys, mask), state


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

    positions  (positions, d_model) -> (T, d_model), or None for none
    layers     what the rows go through, called as layer(x, mask)
    """

    def __init__(
        self,
        sizes: tuple[int, int],
        attention: nn.Module,
        positions: Piece | None,
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
        if self.positions is not None:
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
    scaled_dot_product_attention: Piece = F.scaled_dot_product_attention,
    MultiHeadAttention: Piece | None = None,
    sinusoidal_positions: Piece | None = None,
    EncoderLayer: Piece | None = None,
) -> nn.Module:
    """Make the untrained translator of a stage out of the lessons' pieces; see `STAGES`."""
    sizes = sizes_of(numbers())
    if stage in ("05", "06 no mask"):
        looks = Looks(scaled_dot_product_attention, masked=stage == "05")
        return Compared(sizes, looks, d_source=D_STATE)
    n_heads = 1 if stage == "07 one head" else N_HEADS
    many = ManyLook(_made(MultiHeadAttention, D_STATE, n_heads))
    if stage[:2] == "07":
        return Compared(sizes, many, d_source=D_STATE)
    positions = None if stage == "08 no positions" else sinusoidal_positions
    layers = N_LAYERS if stage == "09" else 0
    blocks = [_made(EncoderLayer, D_STATE, N_HEADS, D_FF, 0.0, True) for _ in range(layers)]
    return WithoutRecurrence(sizes, many, positions, blocks)


def _made(kind: Piece | None, *sizes: Any) -> nn.Module:
    """One layer of a piece that this stage needs."""
    if kind is None:
        raise TypeError("this stage needs MultiHeadAttention, and from 09 on EncoderLayer")
    made: nn.Module = kind(*sizes)
    return made


def train_stage(
    stage: str,
    seed: int,
    scaled_dot_product_attention: Piece,
    MultiHeadAttention: Piece,
    sinusoidal_positions: Piece,
    EncoderLayer: Piece,
    steps: int = translators.STEPS,
) -> dict[str, Any]:
    """Train the translator of a stage; returns what `measured` does, and its first losses."""
    torch.manual_seed(seed)
    pieces = (scaled_dot_product_attention, MultiHeadAttention, sinusoidal_positions, EncoderLayer)
    found = measured(build(stage, *pieces), numbers(), seed, steps)
    return found | {"first": [round(loss, 5) for loss in first_losses(stage, seed, *pieces)]}


def train_with(
    matrices: str,
    divided: bool,
    seed: int,
    scaled_dot_product_attention: Piece,
    steps: int = translators.STEPS,
) -> dict[str, Any]:
    """Train the translator of lesson 05, or one with fewer matrices; returns what `measured` does.

    matrices  which of "q", "k" and "v" have one
    divided   whether the scores are divided by √64
    """
    torch.manual_seed(seed)
    looks = Looks(scaled_dot_product_attention, of=matrices, divided=divided)
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
    model, corpus = build(stage, scaled_dot_product_attention), numbers()
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


def first_losses(stage: str, seed: int, *pieces: Piece, **named: Piece) -> list[float]:
    """The losses of the first 20 of 300 steps with these pieces."""
    torch.manual_seed(seed)
    model, corpus = build(stage, *pieces, **named), numbers()
    batches = corpus.batches(translators.BATCH, translators.STEPS, seed)
    some = itertools.islice(batches, FIRST)
    return trained(model, some, translators.STEPS)


def up_to(lesson: str, **pieces: Piece) -> Any:
    """Draw what the translators up to a lesson get right, all three runs of each, and print it.

    lesson  "04" to "10"
    pieces  functions and classes of which this lesson's stage is built, the learner's own among
            them, by the names that `build` gives them: the stage takes its first 20 steps with
            them, and the losses are compared with those that the library's pieces gave

    Same data, same 300 steps, same rate; a stage's name says what changes. Recorded, seeds 0 to 2.
    To train a stage in full, a minute on one core: `train_stage`.
    """
    shown = {stage: rows for stage, rows in stages().items() if stage[:2] <= lesson}
    tested = numbers().test_by_digits(at_most=100)
    head = [f"{f'{digits} (of {len(tested[digits])})':<15}" for digits in DIGITS]
    print(f"{'digits of the number':<32}", *head)
    for stage, rows in shown.items():
        runs = (" ".join(f"{share:.2f}" for share in column) for column in _columns(rows))
        print(f"{stage:<32}", *(f"{run:<15}" for run in runs))
    axes = plots.panels(1, len(DRAWN), width=2.9, height=0.9 + 0.26 * len(shown))
    for ax, digits in zip(axes, DRAWN, strict=True):
        for place, (stage, rows) in enumerate(shown.items()):
            colour = plots.BLUE if stage[:2] == lesson else plots.GREY
            ax.plot(seeds.at_digits(rows, digits), [place] * len(SEEDS), "o", color=colour)
        ax.set_yticks(range(len(shown)), shown)
        ax.grid(axis="y", color=plots.GREY, linewidth=0.4, alpha=0.6)
        ax.set(xlim=(-0.04, 1.04), xticks=[0, 0.5, 1], ylim=(len(shown) - 0.5, -0.5))
        ax.set(title=f"{digits} digits", xlabel="translated without error")
    if pieces and fewer(FIRST) == FIRST:
        _compare_first_steps("05" if lesson == "06" else lesson, pieces)
    return axes


def _columns(rows: list[Any]) -> list[tuple[float, ...]]:
    """For each number of digits the shares of all seeds."""
    return list(zip(*(row["accuracy"] for row in rows), strict=True))


def _compare_first_steps(lesson: str, pieces: dict[str, Piece]) -> None:
    """Train a few steps with a learner's pieces, and say how far off the recorded ones they are."""
    kept = seeds.where(recorded.read("translator_so_far", "stages"), stage=lesson, seed=0)[0]
    losses = first_losses(lesson, 0, **pieces)
    apart = max(abs(one - two) for one, two in zip(losses, kept["first"], strict=False))
    verdict = "the same" if apart < TOLERANCE else "not the same"
    print(
        f"The first {FIRST} steps with these pieces: loss {losses[0]:.3f} to {losses[-1]:.3f}, "
        f"{verdict} as recorded (largest difference {apart:.1e})."
    )


def stages() -> dict[str, list[Any]]:
    """{label: recorded rows, seeds 0 to 2} of all stages, in the course's order."""
    one_vector = {"d_state": 64, "steps": 300}
    both = {"attention": True, "bidirectional": True, "steps": 300}
    whole = _rows("transformer", "positions", source="sinusoidal", steps=None)
    return {
        "02 one vector": _rows("sequence_to_sequence", "steps", **one_vector),
        "03 additive; two RNNs of 64 read": _rows(
            "bahdanau_attention", "attention x bidirectional", **both
        ),
        "04 additive; two RNNs of 32 read": _scored("additive"),
        "04 scaled dot product": _scored("scaled_dot"),
        "05 W_q, W_k and W_v": _mine("05"),
        "06 padding not hidden": _mine("06 no mask"),
        "07 four heads, W_o, biases": _mine("07"),
        "08 rows of 64, no RNN reads": _mine("08 no positions"),
        "08 positions": _mine("08"),
        "09 two blocks read": _mine("09"),
        "10 blocks write, too": [
            {**row, "accuracy": row["by digits"], "digits": list(DIGITS)} for row in whole
        ],
    }


def _rows(lesson: str, experiment: str, **setting: Any) -> list[Any]:
    """The recorded rows of a setting, with the seeds that are shown."""
    found = seeds.where(recorded.read(lesson, experiment), **setting)
    return [row for row in found if row["seed"] in SEEDS]


def _mine(stage: str) -> list[Any]:
    return _rows("translator_so_far", "stages", stage=stage, steps=None)


def _scored(kind: str) -> list[Any]:
    return _rows("score_functions", "five score functions", kind=kind, steps=300)


def matrices_and_division() -> str:
    """Draw what the translators of `train_with` get right, and lesson 04's without a matrix.

    Changed: which of queries, keys and values have a matrix, and the division. Kept: the rest of
    the translator, data, 300 steps, rate.
    returns  "helps" if with W_q and W_k the worst divided run beats the undivided ones' median
    """
    scored = seeds.where(recorded.read("score_functions", "five score functions"), steps=300)
    rows = recorded.read("scaled_dot_product_attention", "matrices and division")
    runs = {
        "no matrix": seeds.where(scored, kind="dot"),
        "no matrix, divided": seeds.where(scored, kind="scaled_dot"),
    }
    for matrices, name in (("v", "W_v"), ("qk", "W_q, W_k"), ("qkv", "W_q, W_k, W_v")):
        some = seeds.where(rows, matrices=matrices, steps=None)
        runs[name] = seeds.where(some, divided=False)
        runs[f"{name}, divided"] = seeds.where(some, divided=True)
    for ax, digits in zip(plots.panels(1, 2, width=3.6, height=2.9), (5, 6), strict=True):
        at = seeds.dots_at_digits(runs, digits, ax)
        for name, found in at.items():
            print(f"{digits} digits  {name:<24}", *(f"{share:5.2f}" for share in found))
    divided, other = at["W_q, W_k, divided"], at["W_q, W_k"]
    return "helps" if min(divided) > median(other) else "hurts"


STAGES = ("05", "06 no mask", "07", "08 no positions", "08", "09")
SHORT = {"stage": "05", "seed": 0, "steps": 20}

EXPERIMENTS = {
    "stages": Experiment(
        points=[point for stage in STAGES for point in seeded(SEEDS, stage=stage)] + [SHORT],
        run=train_stage,
        again=SHORT,
    ),
}
