"""Lesson 16: narrow readers of documents, and training of models that know digits.

The experiments are those of its open questions; `make bench-digits` measures what the claims say of
digits.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.recorded import Claim, Experiment, seeded
from attention.provided.data import documents
from attention.provided.data.digits import load
from attention.provided.models.attention_weights import watch_attention
from attention.provided.progress import Bar
from attention.provided.training_steps import descend, fewer, take_steps

Model = Callable[..., Any]  # a class of the lesson
Pooling = Callable[[Tensor, Tensor], Tensor]
EPOCHS, BATCH, LEARNING_RATE = 40, 64, 2e-3
SIZES = {"d_model": 64, "n_heads": 4, "d_ff": 128, "n_layers": 2, "dropout": 0.1, "fused": True}
PATCH = 2  # side of a patch

SEEDS = (0, 1, 2)
MARKS = (300, 1000, 3000)  # steps after which a reader is tested


def cnn() -> nn.Module:
    """Return a small convolutional network of 30 634 parameters: (B, 1, 8, 8) to (B, 10)."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 32, 4, 4)
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 64, 2, 2)
        nn.Flatten(),
        nn.Linear(256, 10),
    )


def train(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    epochs: int = EPOCHS,
    seed: int = 0,
    label: str = "training",
) -> list[float]:
    """Train a classifier with AdamW and random batches; returns the mean loss of each epoch.

    The learning rate rises for a tenth of the steps, then falls to 0 as half a wave of the cosine.
    While nbgrader runs the notebook, there is one epoch of a few images.
    """
    epochs, count = fewer(epochs, 1), fewer(len(images), 5 * BATCH)
    images, labels = images[:count], labels[:count]
    draw, per_epoch = torch.Generator().manual_seed(seed), -(-len(images) // BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=epochs * per_epoch, pct_start=0.1
    )
    batches = [
        rows
        for _ in range(epochs)
        for rows in torch.randperm(len(images), generator=draw).split(BATCH)
    ]
    values = (F.cross_entropy(model(images[rows]), labels[rows]) for rows in batches)
    with Bar(len(batches), label) as bar:
        losses = descend(model, values, optimizer, schedule, bar)
    sums = [loss * len(rows) for loss, rows in zip(losses, batches, strict=True)]
    return [sum(sums[i : i + per_epoch]) / count for i in range(0, len(sums), per_epoch)]


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Return the share of images whose best-scored class is the right one."""
    return (model(images).argmax(dim=1) == labels).double().mean().item()


def vision_transformer(VisionTransformer: Model, patch: int = PATCH) -> Any:
    """The model of the lesson, made of its class."""
    return VisionTransformer((8, 8), patch, 1, 10, **SIZES)


def correlation(a: Tensor, b: Tensor) -> float:
    """Pearson's correlation within each row of (B, N), mean of the rows."""
    a, b = (x - x.mean(dim=1, keepdim=True) for x in (a, b))
    return ((a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1)).clamp(min=1e-12)).mean().item()


class Reader(nn.Module):
    """From the words of a document, (B, S, T) ids, to the scores of ten cities, as in the lesson.

    two_levels  attention over words, then over sentences; else two means, a tanh between them
    """

    def __init__(
        self, two_levels: bool, d_model: int, HierarchicalAttention: Model, mean_pooling: Pooling
    ):
        super().__init__()
        self.pooling = mean_pooling
        self.two_levels, self.table = two_levels, nn.Embedding(len(documents.WORDS), d_model)
        self.levels, self.head = HierarchicalAttention(d_model), nn.Linear(d_model, 10)
        self.between = nn.Sequential(nn.Linear(d_model, d_model), nn.Tanh())

    def forward(self, words: Tensor) -> Any:
        """Score the cities: (B, S, T) ids to (B, 10)."""
        x, mask = self.table(words), words != 0
        if self.two_levels:
            return self.head(self.levels(x, mask)[0])
        sentences = self.pooling(x.flatten(0, 1), mask.flatten(0, 1)).unflatten(0, x.shape[:2])
        return self.head(self.pooling(self.between(sentences), mask.any(dim=-1)))


@functools.cache
def _documents() -> tuple[documents.Documents, documents.Documents]:
    """The lesson's documents, to train and to test."""
    return documents.make(4000, seed=1), documents.make(500, seed=2)


def read_narrow(
    reader: str,
    d_model: int,
    seed: int,
    steps: int,
    HierarchicalAttention: Model,
    mean_pooling: Pooling,
) -> dict[str, Any]:
    """Train a reader with d_model numbers for a word: right after MARKS and at the end; loss."""
    train_set, test_set = _documents()
    torch.manual_seed(seed)
    model = Reader(reader == "two levels", d_model, HierarchicalAttention, mean_pooling)
    right, losses = list[float](), list[float]()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def loss() -> Tensor:
        rows = torch.randint(len(train_set.words), (64,))
        return F.cross_entropy(model(train_set.words[rows]), train_set.cities[rows])

    for step, value in enumerate(take_steps((loss() for _ in range(steps)), optimizer), start=1):
        losses.append(value)
        if step in (*MARKS, steps):
            right.append(round(accuracy(model, test_set.words, test_set.cities), 3))
    return {"right": right, "loss": round(sum(losses[-20:]) / len(losses[-20:]), 3)}


def look(
    seed: int,
    VisionTransformer: Model,
    occlusion_map: Callable[..., Tensor],
    epochs: int = EPOCHS,
) -> dict[str, Any]:
    """Train the ViT; for each layer, how its map goes with the drop, mean of the images."""
    data = load()
    torch.manual_seed(seed)
    model = vision_transformer(VisionTransformer)
    train(model, data.train_images, data.train_labels, epochs, seed)
    with watch_attention(model) as seen, torch.no_grad():
        model(data.test_images)
    drop = occlusion_map(model, data.test_images, data.test_labels, PATCH)
    maps = [weights[:, :, 0, 1:].mean(dim=1) for weights in seen.values()]  # (B, N) each
    return {
        "right": round(accuracy(model, data.test_images, data.test_labels), 4),
        "map and drop": [round(correlation(one, drop), 3) for one in maps],
    }


class Moved(nn.Module):
    """A model that sees images, (B, 1, 8, 8), moved in training, each time anew, and not after it.

    pixels  at most so far in both directions; what leaves the image is cut off
    """

    def __init__(self, model: nn.Module, pixels: int):
        super().__init__()
        self.model, self.pixels = model, pixels
        self.draw = torch.Generator().manual_seed(0)

    def forward(self, images: Tensor) -> Any:
        """Score every class, of moved images in training: (B, 1, 8, 8) to (B, 10)."""
        if not self.training or not self.pixels:
            return self.model(images)
        count, _, height, width = images.shape
        wide = F.pad(images, (self.pixels,) * 4).squeeze(1)
        right, down = (
            torch.randint(0, 2 * self.pixels + 1, (count, 1), generator=self.draw) for _ in range(2)
        )
        rows, columns = down + torch.arange(height), right + torch.arange(width)
        which = torch.arange(count)[:, None, None]
        return self.model(wide[which, rows[:, :, None], columns[:, None, :]].unsqueeze(1))


def move(
    model: str, pixels: int, seed: int, VisionTransformer: Model, epochs: int = EPOCHS
) -> dict[str, float]:
    """Train on moved images: the share of the test images, not moved, that is right."""
    data = load()
    torch.manual_seed(seed)
    moved = Moved(cnn() if model == "CNN" else vision_transformer(VisionTransformer), pixels)
    losses = train(moved, data.train_images, data.train_labels, epochs, seed)
    right = accuracy(moved, data.test_images, data.test_labels)
    return {"right": round(right, 4), "loss": round(losses[-1], 4)}


TANH, LEVELS = {"reader": "tanh between"}, {"reader": "two levels"}
SHORT_LOOK = {"seed": 0, "epochs": 1}
SHORT_MOVE = {"model": "CNN", "pixels": 1, "seed": 0, "epochs": 4}

EXPERIMENTS = {
    "narrow readers": Experiment(
        claim="With 8 numbers for a word the reader with a tanh between two means still learns, "
        "with 4 not all; two levels of attention learn sooner",
        control="the numbers for a word, and the reader; documents and rate kept",
        points=[
            *seeded(SEEDS, **TANH, d_model=8, steps=MARKS[-1]),
            *seeded(SEEDS, **TANH, d_model=4, steps=MARKS[-1]),
            *seeded(SEEDS, **LEVELS, d_model=8, steps=MARKS[0]),
        ],
        run=read_narrow,
        again=LEVELS | {"d_model": 8, "seed": 0, "steps": MARKS[0]},
    ),
    "map of the first layer": Experiment(
        claim="The map of the ViT's first layer is no nearer to the drop than that of its last",
        control="the layer; model and test images kept",
        points=[*seeded(SEEDS), SHORT_LOOK],
        run=look,
        again=SHORT_LOOK,
    ),
    "moved images": Experiment(
        claim="Images that are moved by up to a pixel in training cost the ViT some of the test "
        "images, and make no clear difference to the CNN",
        control="moved or not (ViT, not moved: “map of the first layer”); split and 920 steps kept",
        points=[
            *seeded(SEEDS, model="ViT", pixels=1),
            *seeded(SEEDS, model="CNN", pixels=1),
            *seeded(SEEDS, model="CNN", pixels=0),
            SHORT_MOVE,
        ],
        run=move,
        again=SHORT_MOVE,
    ),
}

CLAIMS = [
    Claim(
        claim="Attention on two levels answers what a mean of means and attention on one "
        "level cannot; a tanh between two means answers it too, later",
        control="the reader; documents, steps and rate kept",
        seeds="0, 1, 2",
        where="Words, sentences, documents",
    ),
    Claim(
        claim="The CNN errs least on average; shuffled patches cost neither model anything "
        "clear; without positions the ViT loses a fifth of the images",
        control="model, order of the patches, positions; split and steps kept",
        seeds="0, 1, 2",
        where="Fixed weights, variable weights",
    ),
    Claim(
        claim="A map of attention does not say on which patch the answer rests",
        control="the patch that is blank: most attended, most ink, random, largest drop",
        seeds="0, 1, 2",
        where="Where does it look?",
    ),
]
