"""Trainings of the numbers translator whose numbers have 16 bits in one place or another."""

from typing import Any

import torch
from torch import Tensor, nn

from attention.provided import data, trainings
from attention.provided.data import Batch
from attention.provided.progress import Bar
from attention.provided.translators import one_thread

WAYS = "float32", "bfloat16 products", "bfloat16 weights", "float16 gradients"


def train_in(
    way: str, seed: int, log2_scale: int = 0, dynamic: bool = False, steps: int = 60
) -> dict[str, Any]:
    """Train in one of the WAYS, and measure the held-out loss at the end.

    way      "bfloat16 products" is autocast: weights and sums keep 32 bits; "bfloat16 weights"
             keeps weights and AdamW's moments in 16; of "float16 gradients" those of
             2^log2_scale · loss are rounded to float16, and a step with an infinite one is skipped
    dynamic  halve the scale after each step that is skipped
    returns  loss; lost: share of the gradients that became 0; skipped: steps that were
    """
    corpus, scale = data.numbers(), 2.0**log2_scale
    lost: list[float] = []
    with one_thread(), Bar(steps, way) as bar:
        model = trainings.fresh(corpus, seed)
        model.to(torch.bfloat16 if way == "bfloat16 weights" else torch.float32)
        adam = torch.optim.AdamW(model.parameters(), 0.0, (0.9, 0.98), 1e-9, 0.0)
        for step, batch in enumerate(corpus.batches(32, steps, seed), start=1):
            adam.param_groups[0]["lr"] = trainings.rate(step, "noam", 0.005, 40)
            adam.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=way == "bfloat16 products"):
                loss = trainings.loss_of(model, batch)
            loss.backward()
            bar.update(step, loss.item())
            share = round_gradients(model, scale) if way == "float16 gradients" else 0.0
            if share is None:
                scale = scale / 2 if dynamic else scale
                continue
            lost.append(share)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()
        end = trainings.evaluate(model, [corpus.batch(corpus.test[::7])])["loss"]
    mean = round(sum(lost) / max(1, len(lost)), 4)
    return {"loss": round(end, 4), "lost": mean, "skipped": steps - len(lost)}


def nonzero_gradients(model: nn.Module, batch: Batch) -> Tensor:
    """All gradients of a batch's mean loss, in one vector; those that are exactly 0 left out."""
    together = torch.cat([one.flatten() for one in trainings.gradients_of(model, batch)])
    return together[together != 0]


def round_gradients(model: nn.Module, scale: float) -> float | None:
    """Round a model's gradients to what float16 makes of scale · gradient, divided by the scale.

    returns  the share of those that were not 0 and are now; None if one is not finite
    """
    before = after = 0
    for parameter in model.parameters():
        if parameter.grad is not None:
            rounded = (parameter.grad * scale).half().float() / scale
            if not rounded.isfinite().all():
                return None
            before += int((parameter.grad != 0).sum())
            after += int((rounded != 0).sum())
            parameter.grad.copy_(rounded)
    return 1 - after / before
