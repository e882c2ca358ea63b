"""Lesson 16: readers of documents and docstrings, and training of models that know digits.

`make bench-digits` measures what the claims say of digits.
"""

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.recorded import Claim, Experiment, read, seeded
from attention.provided.data import documents, library_texts
from attention.provided.data.digits import load
from attention.provided.data.library_texts import LENGTH, LIBRARIES, MASK, UNKNOWN, VOCABULARY
from attention.provided.data.tokens import PAD
from attention.provided.figures import plots
from attention.provided.models.attention_weights import watch_attention
from attention.provided.progress import Bar
from attention.provided.training_steps import descend, fewer, take_steps
from attention.tokens_and_positions import LearnedPositions
from attention.transformer import Encoder

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


LABELS = (30, 90, 300, 1500)  # labelled docstrings, as many of each library
SHARE = 0.15  # of the words that are hidden
PRETRAINING, TUNING, TUNING_RATE = 2000, 200, 2e-3


class WordReader(nn.Module):
    """An encoder that guesses words, and tells the library of a text from its pooled vectors."""

    def __init__(self, mean_pooling: Pooling, d_model: int = 64):
        super().__init__()
        self.pooling, self.table = mean_pooling, nn.Embedding(VOCABULARY, d_model)
        nn.init.normal_(self.table.weight, std=d_model**-0.5)
        self.positions = LearnedPositions(LENGTH, d_model)
        self.encoder = Encoder(2, d_model, n_heads=4, d_ff=128, dropout=0.1, fused=True)
        self.bias = nn.Parameter(torch.zeros(VOCABULARY))
        self.head = nn.Linear(d_model, len(LIBRARIES))

    def encode(self, ids: Tensor) -> Any:
        """A vector for each word: (B, T) to (B, T, d_model)."""
        return self.encoder(self.positions(8 * self.table(ids)), (ids != PAD).unsqueeze(1))

    def guess(self, ids: Tensor, asked: Tensor) -> Any:
        """Score all words at the places that are asked for, bool (B, T): (places, VOCABULARY)."""
        return self.encode(ids)[asked] @ self.table.weight.T + self.bias

    def forward(self, ids: Tensor) -> Any:
        """Score the libraries: (B, T) to (B, 3)."""
        return self.head(self.pooling(self.encode(ids), ids != PAD))


def _trained(
    model: nn.Module, loss: Callable[[], Tensor], steps: int, rate: float, label: str
) -> list[float]:
    """Train with AdamW for some steps, the rate as in `train`; returns the losses."""
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rate, total_steps=steps, pct_start=0.1
    )
    with Bar(steps, label) as bar:
        return descend(model, (loss() for _ in range(steps)), optimizer, schedule, bar)


def _fill_in(
    model: WordReader, mask_tokens: Callable[..., Any], seed: int, steps: int
) -> dict[str, Any]:
    """Pre-train on hidden words of all training texts; how well held-out ones are guessed."""
    train_set, test_set, _ = library_texts.load()
    draw = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        ids = train_set.ids[torch.randint(len(train_set.ids), (64,), generator=draw)]
        read, wanted = mask_tokens(ids, torch.rand(ids.shape, generator=draw), SHARE, MASK)
        asked = wanted != -100  # scores are computed for these alone: 2 000 for each
        return F.cross_entropy(model.guess(read, asked), wanted[asked])

    _trained(model, loss, steps, 2e-3, f"hidden words, seed {seed}")
    noise = torch.rand(test_set.ids.shape, generator=torch.Generator().manual_seed(0))
    read, wanted = mask_tokens(test_set.ids, noise, SHARE, MASK)
    asked = wanted != -100
    with torch.no_grad():
        scores, wanted = model.guess(read, asked), wanted[asked]
    often = train_set.ids[train_set.ids != PAD].bincount().argmax()
    return {
        "guessed": round((scores.argmax(1) == wanted).double().mean().item(), 4),
        "the most frequent one": round((wanted == often).double().mean().item(), 4),
    }


def _right(says: Tensor, library: Tensor) -> float:
    """The share that is right, mean of the libraries: a guess gets a third."""
    shares = [(says[library == n] == n).double().mean().item() for n in range(len(LIBRARIES))]
    return round(sum(shares) / len(shares), 4)


def _tune(model: nn.Module, rows: Tensor, seed: int, label: str) -> float:
    """Train a copy of a model on some labelled texts; the share of held-out ones told apart."""
    train_set, test_set, _ = library_texts.load()
    model, draw = copy.deepcopy(model), torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        some = rows[torch.randint(len(rows), (32,), generator=draw)]
        return F.cross_entropy(model(train_set.ids[some]), train_set.library[some])

    _trained(model, loss, TUNING, TUNING_RATE, label)
    with torch.no_grad():
        return _right(model(test_set.ids).argmax(dim=1), test_set.library)


def _count_words(rows: Tensor) -> float:
    """Logistic regression on which words a text has: what needs no encoder."""
    from sklearn.linear_model import LogisticRegression  # slow to import

    train_set, test_set, _ = library_texts.load()

    def occur(ids: Tensor) -> Tensor:
        return torch.zeros(len(ids), VOCABULARY).scatter_(1, ids, 1.0)[:, UNKNOWN:]

    model = LogisticRegression(max_iter=500)
    model.fit(occur(train_set.ids[rows]).numpy(), train_set.library[rows].numpy())
    said = torch.from_numpy(model.predict(occur(test_set.ids).numpy()))
    return _right(said, test_set.library)


def read_hidden_words(
    seed: int,
    mask_tokens: Callable[..., Any],
    mean_pooling: Pooling,
    steps: int = PRETRAINING,
    labels: Sequence[int] = LABELS,
) -> dict[str, Any]:
    """Pre-train an encoder on hidden words; then tell libraries apart from few labelled texts.

    For each number of labels: what the pre-trained encoder gets right, the same encoder from its
    random start, and counted words, all from the same labelled texts.
    """
    library = library_texts.load()[0].library
    torch.manual_seed(seed)
    start = WordReader(mean_pooling)
    pretrained, draw = copy.deepcopy(start), torch.Generator().manual_seed(seed)
    found: dict[str, Any] = _fill_in(pretrained, mask_tokens, seed, steps)
    orders = [(library == n).nonzero()[:, 0] for n in range(len(LIBRARIES))]
    orders = [order[torch.randperm(len(order), generator=draw)] for order in orders]
    models = {"pre-trained": pretrained, "random start": start}
    for name in (*models, "counted words"):
        found[name] = []
    for count in labels:
        rows = torch.cat([order[: count // len(LIBRARIES)] for order in orders])
        for name, model in models.items():
            found[name].append(_tune(model, rows, seed, f"{name}, {count} labels"))
        found["counted words"].append(_count_words(rows))
    return found


def draw_hidden_words() -> float:
    """Draw and print what the recorded encoders get right, by how many labelled texts they have.

    returns  with the fewest labels, how much more the pre-trained one gets right: the median seed
    """
    rows = [row for row in read("encoders_and_vision", "hidden words") if "steps" not in row]
    styles = {
        "pre-trained": (plots.BLUE, "o-"),
        "random start": (plots.VERMILION, "s-"),
        "counted words": (plots.GREY, "D--"),
    }
    ax = plots.panels(width=6.5, height=3.0)
    for name, (colour, style) in styles.items():
        for row in rows:
            label = name if row is rows[0] else None
            ax.plot(LABELS, row[name], style, color=colour, alpha=0.7, markersize=4, label=label)
        for place, count in enumerate(LABELS):
            shares = " ".join(f"{row[name][place]:.3f}" for row in rows)
            print(f"{name:<14} {count:5} labels   right, three seeds: {shares}")
    ax.axhline(1 / len(LIBRARIES), color=plots.BLACK, linewidth=1)
    ax.set(xscale="log", xlabel="labelled docstrings", ylabel="library told right", ylim=(0.3, 1))
    ax.set_xticks(LABELS, LABELS)
    ax.minorticks_off()
    plots.legend(ax, fontsize=8, loc="center right")
    for name in ("guessed", "the most frequent one"):
        print(f"hidden words, {name}:", *(f"{row[name]:.3f}" for row in rows))
    return sorted(row["pre-trained"][0] - row["random start"][0] for row in rows)[len(rows) // 2]


TANH, LEVELS = {"reader": "tanh between"}, {"reader": "two levels"}
SHORT_LOOK = {"seed": 0, "epochs": 1}
SHORT_WORDS = {"seed": 0, "steps": 50, "labels": [30]}
SHORT_MOVE = {"model": "CNN", "pixels": 1, "seed": 0, "epochs": 4}

EXPERIMENTS = {
    "hidden words": Experiment(
        claim="An encoder that has guessed hidden words of docstrings tells their libraries apart "
        "better than from a random start, by 0.08 to 0.11 with 30 labelled ones, by 0.04 or less "
        "with 300 and more",
        control="pre-trained or not; encoder, labelled texts and steps kept; words that are "
        "counted, from the same texts",
        points=[*seeded(SEEDS), SHORT_WORDS],
        run=read_hidden_words,
        again=SHORT_WORDS,
    ),
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
