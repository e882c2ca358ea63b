"""Lesson 09: what warm-up, skip connections and norms do for a stack of twelve layers.

Its task is to say a sequence of digits backwards.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.recorded import Claim, Experiment, seeded
from attention.multi_head_attention import Sublayers
from attention.provided.progress import Bar
from attention.provided.training_steps import descend

SEEDS = (1, 2, 3)
RATES = (0.001, 0.003, 0.006, 0.012)
D_MODEL, N_HEADS, T, N_LAYERS = 32, 4, 6, 12
SIZES = (D_MODEL, N_HEADS, 2 * D_MODEL, 0.0)  # of a layer; nothing is dropped
NORMS = ("pre", "post", "none")


class Switched(Sublayers):
    """An encoder layer whose skip connections and norms can be switched off.

    norm  "pre", "post" or "none"
    skip  whether what comes in is added to the updates

    The other arguments are those of `Sublayers`. Raises ValueError for another norm.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm: str = "post",
        skip: bool = True,
    ):
        super().__init__(d_model, n_heads, d_ff, dropout, norm == "pre", fused=True)
        if norm not in NORMS:
            raise ValueError(f"{norm!r} is none of {', '.join(NORMS)}")
        self.norm, self.skip = norm, skip

    def forward(self, x: Tensor) -> Tensor:
        """Attend, then work on every position: (B, T, d_model) to (B, T, d_model)."""
        for sublayer, norm in ((self.attention, self.norm_1), (self.feed_forward, self.norm_2)):
            h = norm(x) if self.norm == "pre" else x
            update = sublayer(h, h, h) if sublayer is self.attention else sublayer(h)
            x = x + update if self.skip else update
            x = norm(x) if self.norm == "post" else x
        return x


class Reverser(nn.Module):
    """Digits and their positions, layers, and scores of the ten digits at each position.

    make      makes one layer
    pre_norm  whether a final norm stands after the last layer
    n_layers  how many there are
    """

    def __init__(self, make: Callable[[], nn.Module], pre_norm: bool, n_layers: int = N_LAYERS):
        super().__init__()
        self.digits, self.read_out = nn.Embedding(10, D_MODEL), nn.Linear(D_MODEL, 10)
        self.positions = nn.Parameter(torch.randn(T, D_MODEL))
        self.layers = nn.ModuleList(make() for _ in range(n_layers))
        self.norm = nn.LayerNorm(D_MODEL) if pre_norm else nn.Identity()

    def forward(self, digits: Tensor) -> Tensor:
        """Score the digits in reverse: (B, T) to (B, T, 10)."""
        x = self.digits(digits) + self.positions  # (B, T, d_model)
        for layer in self.layers:
            x = layer(x)
        scores: Tensor = self.read_out(self.norm(x))
        return scores


def train(
    make: Callable[[], nn.Module],
    pre_norm: bool,
    rate: float = 0.006,
    warm_up: int = 1,
    seed: int = 1,
    steps: int = 90,
    label: str = "training",
    factor: float = 1.0,
    n_layers: int = N_LAYERS,
) -> tuple[Reverser, list[float]]:
    """Return a trained `Reverser` and its losses, in nats a digit.

    warm_up  number of steps during which the learning rate rises from 0 to ``rate``
    factor   what the loss is multiplied with before its gradient is taken
    """
    torch.manual_seed(seed)
    model = Reverser(make, pre_norm, n_layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1, (n + 1) / warm_up))
    batches = (torch.randint(10, (16, T)) for _ in range(steps))
    scaled = (factor * reversal_loss(model, digits) for digits in batches)
    with Bar(steps, label) as bar:
        losses = descend(model, scaled, optimizer, schedule, bar)
    return model, [loss / factor for loss in losses]


def reversal_loss(model: nn.Module, digits: Tensor) -> Tensor:
    """The mean cross-entropy of the reversed digits, (B, T)."""
    return F.cross_entropy(model(digits).flatten(0, 1), digits.flip(1).flatten())


def train_one(
    norm: str,
    seed: int,
    rate: float = 0.006,
    warm_up: int = 1,
    skip: bool = True,
    factor: float = 1.0,
    steps: int = 90,
    n_layers: int = N_LAYERS,
) -> dict[str, Any]:
    """Train `Switched` layers, twelve if nothing else is said.

    returns  "last", the mean loss of the last ten steps, and "losses", means of ten steps
    """
    losses = train(
        lambda: Switched(*SIZES, norm=norm, skip=skip),
        norm == "pre",
        rate,
        warm_up,
        seed,
        steps,
        factor=factor,
        n_layers=n_layers,
    )[1]
    means = [round(sum(losses[i : i + 10]) / 10, 3) for i in range(0, steps, 10)]
    return {"last": means[-1], "losses": means}


@torch.no_grad()
def without_layers(model: Reverser, choices: int = 10) -> list[float]:
    """The share of digits right without 0, 1, … all of the layers, chosen at random.

    choices  how often layers are chosen; the shares are means
    """
    draw = torch.Generator().manual_seed(2)
    digits, whole = torch.randint(10, (200, T), generator=draw), model.layers
    shares = []
    for missing in range(len(whole) + 1):
        hits = []
        for _ in range(choices):
            kept = torch.randperm(len(whole), generator=draw)[missing:].sort().values
            model.layers = nn.ModuleList(whole[i] for i in kept.tolist())
            hits.append(model(digits).argmax(dim=-1) == digits.flip(1))  # (B, T)
        shares.append(round(torch.stack(hits).double().mean().item(), 3))
    model.layers = whole
    return shares


def train_and_thin(norm: str, seed: int, warm_up: int = 1) -> dict[str, Any]:
    """Train twelve `Switched` layers; returns "right", what `without_layers` gives."""
    model, _ = train(lambda: Switched(*SIZES, norm=norm), norm == "pre", 0.006, warm_up, seed)
    return {"right": without_layers(model)}


def first_step(norm: str, seed: int, rate: float = 0.006) -> dict[str, float]:
    """Say how far one step of Adam moves an untrained `Reverser`.

    returns  "gradient", the norm of all gradients; "moved", the mean change of a score for the ten
             digits, in standard deviations of the scores before the step
    """
    torch.manual_seed(seed)
    model = Reverser(lambda: Switched(*SIZES, norm=norm), norm == "pre")
    digits = torch.randint(10, (16, T))
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    before = model(digits).detach()
    reversal_loss(model, digits).backward()
    gradient = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    optimizer.step()
    moved = (model(digits).detach() - before).abs().mean() / before.std()
    return {"gradient": round(gradient.norm().item(), 3), "moved": round(moved.item(), 3)}


def shallower(n_layers: int, seed: int) -> dict[str, float]:
    """Train a post-norm stack of fewer layers at a constant 0.006; see `train_one`."""
    return {"last": train_one("post", seed, n_layers=n_layers)["last"]}


EXPERIMENTS = {
    "rates x warm-up": Experiment(
        claim="At constant rates post-norm trains at 0.003, fails in two runs of three at 0.006 "
        "and in all at 0.012; with a warm-up 0.006 is its best rate; pre-norm trains at all four "
        "rates without one",
        control="the norm, the rate, and a constant rate or a warm-up of 60 of the 90 steps; "
        "layers, task, batches and seeds kept",
        points=[
            point
            for norm in ("pre", "post")
            for warm_up in (1, 60)
            for rate in RATES
            for point in seeded(SEEDS, norm=norm, warm_up=warm_up, rate=rate)
        ],
        run=train_one,
        again={"norm": "pre", "warm_up": 1, "rate": 0.003, "seed": 1},
    ),
    "add and norm apart": Experiment(
        claim="Without skip connections twelve layers do not learn, whatever the norm and the "
        "rate; with them and without norms they do at the two lower rates of four",
        control="skip connections or none, the norm, four constant rates; compared with the "
        "constant rates of “rates x warm-up”",
        points=[
            point
            for norm, skip in (("none", True), *((norm, False) for norm in NORMS))
            for rate in RATES
            for point in seeded(SEEDS, norm=norm, skip=skip, rate=rate)
        ],
        run=train_one,
        again={"norm": "none", "skip": True, "rate": 0.003, "seed": 1},
    ),
    "gradients scaled": Experiment(
        claim="Adam trains post-norm alike with gradients a hundred times smaller or larger",
        control="a factor on the loss; post-norm, a constant 0.003, batches and seeds kept",
        points=[
            point
            for factor in (0.01, 1.0, 100.0)
            for point in seeded(SEEDS, norm="post", rate=0.003, factor=factor)
        ],
        run=train_one,
        again={"norm": "post", "rate": 0.003, "factor": 100.0, "seed": 1},
    ),
    "one step": Experiment(
        claim="One step of Adam moves the scores of an untrained post-norm stack about twice as "
        "far as those of a pre-norm stack at small rates",
        control="the norm and the rate; layers, batch and seeds kept",
        points=[
            point
            for norm in NORMS
            for rate in (0.0001, 0.001, 0.006)
            for point in seeded(SEEDS, norm=norm, rate=rate)
        ],
        run=first_step,
        again={"norm": "post", "rate": 0.001, "seed": 1},
    ),
    "layers taken out": Experiment(
        claim="A trained stack of twelve layers with skip connections loses next to nothing "
        "without one of them",
        control="how many layers are missing, mean of ten choices; pre-norm, and post-norm with a "
        "warm-up",
        points=[*seeded(SEEDS, norm="pre", warm_up=1), *seeded(SEEDS, norm="post", warm_up=60)],
        run=train_and_thin,
        again={"norm": "pre", "warm_up": 1, "seed": 1},
    ),
}
ANSWERS_TO_QUESTIONS = {
    "09 bolder rates": Experiment(
        claim="Twelve pre-norm layers train at 0.024, worse at 0.048, and not at 0.096",
        control="the rate; compared with the constant rates of lesson 09's “rates x warm-up”",
        points=[
            point
            for rate in (0.024, 0.048, 0.096)
            for point in seeded(SEEDS, norm="pre", rate=rate)
        ],
        run=train_one,
        again=None,
    ),
    "09 fewer layers": Experiment(
        claim="At a constant 0.006 post-norm trains with 6 layers and with 3",
        control="the number of layers; compared with twelve of lesson 09's “rates x warm-up”",
        points=[point for n_layers in (6, 3) for point in seeded(SEEDS, n_layers=n_layers)],
        run=shallower,
        again={"n_layers": 3, "seed": 1},
    ),
}
CLAIMS = [
    Claim(
        "Without skip connections the gradient fades in 48 layers, with them it does not",
        control="skip connections; the same input and weights",
        seeds="0, 1, 2",
        where="What fails without this idea",
    ),
    Claim(
        "In a stack with skip connections and no norms the numbers grow with the depth",
        control="the depth; the stacks of the claim above",
        seeds="0, 1, 2",
        where="Vectors that keep their size",
    ),
    Claim(
        "With norms over the batch a sentence changes with its neighbour, with LayerNorm not",
        control="the norm, and the other sentence of the batch",
        seeds="1 (three random sentences)",
        where="Vectors that keep their size",
    ),
    Claim(
        "In untrained stacks of 48 layers the first layer's gradient is kept by skip connections, "
        "not by norms; without them all positions become one vector",
        control="skip connections, and the norm before or after; input and start kept",
        seeds="0, 1, 2",
        where="How deep can we go?",
    ),
    Claim(
        "At a rate of 0.006 pre-norm learns, post-norm only with a warm-up",
        control="the norm, then the warm-up; one run each, the whole sweep: “rates x warm-up”",
        seeds="1",
        where="Which of them learn?",
    ),
]
