"""Handwritten digits for the lesson on vision: their images, and these in pieces."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from attention.provided import demand


class Digits(NamedTuple):
    """Images (B, 1, 8, 8) from 0, paper, to 1, ink, and labels (B,) from 0 to 9."""

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor


def load(split: int = 0) -> Digits:
    """Return the 1 797 images of scikit-learn: 1 438 to train, 359 to test.

    split  which 359: the lesson's are those of 0
    """
    from sklearn.datasets import load_digits

    both = load_digits()
    images = torch.tensor(both.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(both.target, dtype=torch.int64)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(split))
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


def moved(images: Tensor, pixels: int, draw: torch.Generator) -> Tensor:
    """Move every image, (B, 1, height, width), by up to ``pixels`` in both directions, at random.

    What leaves the image is cut off, and paper comes in.
    Raises ValueError for less than no pixels.
    """
    demand.counts(0, pixels=pixels)
    count, _, height, width = images.shape
    wide = F.pad(images, (pixels,) * 4).squeeze(1)
    right, down = (torch.randint(0, 2 * pixels + 1, (count, 1), generator=draw) for _ in range(2))
    rows, columns = down + torch.arange(height), right + torch.arange(width)
    which = torch.arange(count)[:, None, None]
    return wide[which, rows[:, :, None], columns[:, None, :]].unsqueeze(1)
