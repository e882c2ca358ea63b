"""The board of lesson 16: a vision Transformer learns to read digits.

Budget: so many images to learn from, and so many parameters. What is ranked is the share of
held-out digits that are read right.
"""

import math
import random
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.encoders_and_vision import VisionTransformer, mean_pooling, patchify
from attention.experiments import encoders_and_vision
from attention.provided.data import digits
from attention.provided.training_steps import one_thread
from autograder.leaderboard import limits
from autograder.leaderboard.entries import Kind, Refused

IMAGES, PARAMETERS = 14_000, 70_000
MEASURE = "the share of digits read right, of images that were held out"
UNIT, SIZE = "%", "parameters"
BUDGET = f"{IMAGES} images (steps × images in a batch) and {PARAMETERS} parameters"
HELD_OUT = 400  # images for each seed, other ones for every seed
SIDE = 8  # pixels

KINDS: dict[str, Kind] = {
    "patch_size": (int, 2, SIDE),  # with patches of one pixel a training takes minutes
    "d_model": (int, 4, 256),
    "n_heads": (int, 1, 16),
    "d_ff": (int, 1, 1024),
    "n_layers": (int, 1, 4),
    "dropout": (float, 0.0, 0.9),
    "pooling": ("cls", "mean"),
    "steps": (int, 1, IMAGES),
    "images": (int, 16, IMAGES),
    "rate": (float, 0.0, 1.0),
    "rise": (float, 0.0, 1.0),
    "weight_decay": (float, 0.0, 1.0),
    "smoothing": (float, 0.0, 0.9),
    "shift": (int, 0, 2),
}
# The settings of the lesson itself, in the order of KINDS; the lesson takes more steps.
LESSON = (2, 64, 4, 128, 2, 0.1, "cls", 218, 64, 0.002, 0.1, 0.01, 0.0, 0)
USUAL: dict[str, Any] = dict(zip(KINDS, LESSON, strict=True))
SIZES = ("d_model", "n_heads", "d_ff", "n_layers", "dropout")


class MeanPooled(nn.Module):
    """A vision Transformer in which the mean of all patches decides, not the extra token."""

    def __init__(self, model: VisionTransformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        """Score every class: (B, 1, 8, 8) -> (B, 10)."""
        model = self.model
        encoded = model.classifier.encode(model.embedding(patchify(images, model.patch_size)))
        scores: Tensor = model.classifier.head(mean_pooling(encoded[:, 1:]))
        return scores


def refuse(settings: Mapping[str, Any]) -> int:
    """The number of parameters of these settings. Raises Refused where they are over the budget."""
    if SIDE % settings["patch_size"]:
        raise Refused(
            f"patch_size={settings['patch_size']} does not divide an image of {SIDE} × {SIDE}"
        )
    return limits.learning(settings, _model, "images", IMAGES, PARAMETERS)


def score(settings: Mapping[str, Any], seed: int, secret: int) -> float:
    """The share of right digits, from 0 to 1, after a training with these settings."""
    with one_thread():
        train_images, train_labels, images, labels = split(seed, secret)
        model = _trained(settings, seed, train_images, train_labels)
        return encoders_and_vision.accuracy(model, images, labels)


def split(seed: int, secret: int) -> digits.Digits:
    """The images to learn from and those held out; no image is held out for two seeds.

    The lesson prints how many of its test images are right, so none of these is ever held out.
    """
    known = digits.load()
    order = random.Random(secret).sample(range(len(known.train_labels)), len(known.train_labels))
    out = order[seed * HELD_OUT : (seed + 1) * HELD_OUT]
    rest = sorted(set(order) - set(out))
    return digits.Digits(
        torch.cat([known.train_images[rest], known.test_images]),
        torch.cat([known.train_labels[rest], known.test_labels]),
        known.train_images[out],
        known.train_labels[out],
    )


def _model(settings: Mapping[str, Any], seed: int) -> nn.Module:
    torch.manual_seed(seed)
    sizes = {name: settings[name] for name in SIZES}
    model = VisionTransformer((SIDE, SIDE), settings["patch_size"], 1, 10, **sizes, fused=True)
    return MeanPooled(model) if settings["pooling"] == "mean" else model


def _trained(settings: Mapping[str, Any], seed: int, images: Tensor, labels: Tensor) -> nn.Module:
    model, steps = _model(settings, seed), settings["steps"]
    draw = torch.Generator().manual_seed(seed)
    adam = torch.optim.AdamW(model.parameters(), 0.0, weight_decay=settings["weight_decay"])
    model.train()
    left = torch.empty(0, dtype=torch.int64)
    for step in range(1, steps + 1):
        while len(left) < settings["images"]:  # epoch after epoch
            left = torch.cat([left, torch.randperm(len(images), generator=draw)])
        rows, left = left[: settings["images"]], left[settings["images"] :]
        adam.param_groups[0]["lr"] = _rate(step, steps, settings["rate"], settings["rise"])
        adam.zero_grad()
        scores = model(_moved(images[rows], settings["shift"], draw))
        F.cross_entropy(scores, labels[rows], label_smoothing=settings["smoothing"]).backward()
        adam.step()
    return model.eval()


def _rate(step: int, steps: int, peak: float, rise: float) -> float:
    """Up in a line for a share of the steps, then down to 0 as half a wave of the cosine."""
    up = rise * steps
    if step <= up:
        return peak * step / up
    return peak * (1 + math.cos(math.pi * (step - up) / (steps + 1 - up))) / 2


def _moved(images: Tensor, shift: int, draw: torch.Generator) -> Tensor:
    """Move each image by up to ``shift`` pixels each way; what comes in is paper."""
    if not shift:
        return images
    wide = F.pad(images, [shift] * 4)
    corners = torch.randint(2 * shift + 1, (len(images), 2), generator=draw).tolist()
    return torch.stack(
        [
            image[:, top : top + SIDE, left : left + SIDE]
            for image, (top, left) in zip(wide, corners, strict=True)
        ]
    )
