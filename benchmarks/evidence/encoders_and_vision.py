"""What lesson 16 claims. `make bench-digits` measures what the claims say of digits.

The experiments are those of its open questions.
"""

import functools

import torch
from torch import nn
from torch.nn import functional as F

from attention.encoders_and_vision import HierarchicalAttention, mean_pooling, occlusion_map
from attention.provided import digits, documents
from attention.provided.descent import take_steps
from attention.provided.sublayers import watch_attention
from benchmarks.digits import PATCH, correlation, vision_transformer
from benchmarks.evidence import Claim, Experiment, seeded

SEEDS = (0, 1, 2)
MARKS = (300, 1000, 3000)  # steps after which a reader is tested
MODELS = {"ViT": vision_transformer, "CNN": digits.cnn}


class Reader(nn.Module):
    """From the words of a document, (B, S, T) ids, to the scores of ten cities, as in the lesson.

    two_levels  attention over words, then over sentences; else two means, a tanh between them
    """

    def __init__(self, two_levels, d_model):
        super().__init__()
        self.two_levels, self.table = two_levels, nn.Embedding(len(documents.WORDS), d_model)
        self.levels, self.head = HierarchicalAttention(d_model), nn.Linear(d_model, 10)
        self.between = nn.Sequential(nn.Linear(d_model, d_model), nn.Tanh())

    def forward(self, words):
        x, mask = self.table(words), words != 0
        if self.two_levels:
            return self.head(self.levels(x, mask)[0])
        sentences = mean_pooling(x.flatten(0, 1), mask.flatten(0, 1)).unflatten(0, x.shape[:2])
        return self.head(mean_pooling(self.between(sentences), mask.any(dim=-1)))


@functools.cache
def _documents():
    """The lesson's documents, to train and to test."""
    return documents.make(4000, seed=1), documents.make(500, seed=2)


def read_narrow(reader, d_model, seed, steps):
    """Train a reader with d_model numbers for a word: right after MARKS and at the end; loss."""
    train_set, test_set = _documents()
    torch.manual_seed(seed)
    model, right, losses = Reader(reader == "two levels", d_model), [], []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def loss():
        rows = torch.randint(len(train_set.words), (64,))
        return F.cross_entropy(model(train_set.words[rows]), train_set.cities[rows])

    for step, value in enumerate(take_steps((loss() for _ in range(steps)), optimizer), start=1):
        losses.append(value)
        if step in (*MARKS, steps):
            right.append(round(digits.accuracy(model, test_set.words, test_set.cities), 3))
    return {"right": right, "loss": round(sum(losses[-20:]) / len(losses[-20:]), 3)}


def look(seed, epochs=digits.EPOCHS):
    """Train the ViT; for each layer, how its map goes with the drop, mean of the images."""
    data = digits.load()
    torch.manual_seed(seed)
    model = vision_transformer()
    digits.train(model, data.train_images, data.train_labels, epochs, seed)
    with watch_attention(model) as seen, torch.no_grad():
        model(data.test_images)
    drop = occlusion_map(model, data.test_images, data.test_labels, PATCH)
    maps = [weights[:, :, 0, 1:].mean(dim=1) for weights in seen.values()]  # (B, N) each
    return {
        "right": round(digits.accuracy(model, data.test_images, data.test_labels), 4),
        "map and drop": [round(correlation(one, drop), 3) for one in maps],
    }


class Moved(nn.Module):
    """A model that sees images, (B, 1, 8, 8), moved in training, each time anew, and not after it.

    pixels  at most so far in both directions; what leaves the image is cut off
    """

    def __init__(self, model, pixels):
        super().__init__()
        self.model, self.pixels = model, pixels
        self.draw = torch.Generator().manual_seed(0)

    def forward(self, images):
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


def move(model, pixels, seed, epochs=digits.EPOCHS):
    """Train on moved images: the share of the test images, not moved, that is right."""
    data = digits.load()
    torch.manual_seed(seed)
    moved = Moved(MODELS[model](), pixels)
    losses = digits.train(moved, data.train_images, data.train_labels, epochs, seed)
    right = digits.accuracy(moved, data.test_images, data.test_labels)
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
