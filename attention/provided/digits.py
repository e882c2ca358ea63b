"""Handwritten digits for the lesson on vision: the images, a small CNN, and a way to train."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.provided import demand
from attention.provided.descent import descend, fewer
from attention.provided.progress import Bar

EPOCHS, BATCH, LEARNING_RATE = 40, 64, 2e-3


class Digits(NamedTuple):
    """Images (B, 1, 8, 8) from 0, paper, to 1, ink, and labels (B,) from 0 to 9."""

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor


def load() -> Digits:
    """Return the 1 797 images of scikit-learn, split once: 1 438 to train, 359 to test."""
    from sklearn.datasets import load_digits

    both = load_digits()
    images = torch.tensor(both.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(both.target, dtype=torch.int64)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    test, train = order[: len(order) // 5], order[len(order) // 5 :]
    return Digits(images[train], labels[train], images[test], labels[test])


def shuffle_patches(images: Tensor, size: int, seed: int = 0) -> Tensor:
    """Put the patches of every image, size × size each, into one fixed random order.

    Raises ValueError for a size below 1.
    """
    demand.counts(size=size)
    patches = F.unfold(images, size, stride=size)  # (B, C · size · size, N)
    order = torch.randperm(patches.shape[2], generator=torch.Generator().manual_seed(seed))
    height, width = images.shape[2:]
    return F.fold(patches[:, :, order], (height, width), size, stride=size)


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
