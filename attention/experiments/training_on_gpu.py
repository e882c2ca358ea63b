"""Lesson 12: what 16 bits do to a training, what checkpointing keeps, and shares of a batch.

    torchrun --nproc-per-node 2 -m attention.experiments.training_on_gpu

lets two processes train on one batch: see `main`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.utils.checkpoint import checkpoint

from attention.experiments import training
from attention.experiments.recorded import Claim, Experiment
from attention.provided.data.numbers import Batch, numbers
from attention.provided.data.tokens import PAD
from attention.provided.measuring.saved_for_backward import kept_bytes
from attention.provided.progress import Bar
from attention.provided.training_steps import one_thread
from attention.transformer_blocks import EncoderLayer

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
    corpus, scale = numbers(), 2.0**log2_scale
    lost: list[float] = []
    with one_thread(), Bar(steps, way) as bar:
        model = training.fresh(corpus, seed)
        model.to(torch.bfloat16 if way == "bfloat16 weights" else torch.float32)
        adam = torch.optim.AdamW(model.parameters(), 0.0, (0.9, 0.98), 1e-9, 0.0)
        for step, batch in enumerate(corpus.batches(32, steps, seed), start=1):
            adam.param_groups[0]["lr"] = training.rate(step, "noam", 0.005, 40)
            adam.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=way == "bfloat16 products"):
                loss = training.loss_of(model, batch)
            loss.backward()
            bar.update(step, loss.item())
            share = round_gradients(model, scale) if way == "float16 gradients" else 0.0
            if share is None:
                scale = scale / 2 if dynamic else scale
                continue
            lost.append(share)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()
        end = training.evaluate(model, [corpus.batch(corpus.test[::7])])["loss"]
    mean = round(sum(lost) / max(1, len(lost)), 4)
    return {"loss": round(end, 4), "lost": mean, "skipped": steps - len(lost)}


def nonzero_gradients(model: nn.Module, batch: Batch) -> Tensor:
    """All gradients of a batch's mean loss, in one vector; those that are exactly 0 left out."""
    together = torch.cat([one.flatten() for one in training.gradients_of(model, batch)])
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


def kept(fused: bool, seed: int, T: int = 256) -> dict[str, int]:
    """Bytes that a layer of the paper's size keeps for a sentence, plain and checkpointed."""
    torch.manual_seed(seed)
    layer = EncoderLayer(512, 8, 2048, dropout=0.0, fused=fused)
    x = torch.randn(1, T, 512, requires_grad=True)
    ways: dict[str, Callable[[], Any]] = {
        "plain": partial(layer, x),
        "checkpointed": lambda: checkpoint(layer, x, use_reentrant=False),
    }
    return {name: kept_bytes(action, layer.parameters()) for name, action in ways.items()}


def apart(one: list[Tensor], other: list[Tensor]) -> float:
    """Return the largest difference between two lists of tensors, over the largest number."""
    largest = max(x.abs().max().item() for x in other)
    return max((x - y).abs().max().item() for x, y in zip(one, other, strict=True)) / largest


def main() -> None:
    """Join the gradients of all processes in two ways, and compare both with one process.

    Each process trains on a share of one batch. The first one then takes the whole batch alone, and
    prints how far the gradients are apart. `torchrun` starts them.
    """
    distributed.init_process_group("gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()
    corpus = numbers()
    model = training.fresh(corpus)
    pairs = sorted(corpus.train[:10] + corpus.train[-10:], key=lambda pair: len(pair[2]))
    per_process = -(-len(pairs) // world)
    share = corpus.batch(pairs[rank * per_process :][:per_process])
    tokens = (share.target != PAD).sum()
    total = tokens.clone()
    distributed.all_reduce(total)  # the sum over all processes, in place
    own = training.gradients_of(model, share)
    weighted = [gradient * tokens / total for gradient in own]
    plain = [gradient / world for gradient in own]
    for gradient in weighted + plain:
        distributed.all_reduce(gradient)
    # One write, so that the two processes do not write into each other's line.
    print(f"process {rank} of {world}: {tokens} of {total} tokens\n", end="", flush=True)
    distributed.barrier()
    if rank == 0:
        whole = training.gradients_of(model, corpus.batch(pairs))
        print(f"each weighted with its tokens: {apart(weighted, whole):.0e} from one process")
        print(f"plain mean of the processes:   {apart(plain, whole):.0e} from one process")
    distributed.destroy_process_group()


SEEDS = 0, 1, 2
FLOAT16 = {"way": "float16 gradients", "dynamic": False}
SCALES = [{**FLOAT16, "log2_scale": scale} for scale in (-16, 0, 8, 24)]
SCALES.append({**FLOAT16, "log2_scale": 24, "dynamic": True})


EXPERIMENTS = {
    "numbers of 16 bits": Experiment(
        claim="products in bfloat16 change little of what is learned",
        control="which numbers have 16 bits; data, steps and rates are kept",
        points=[
            {"way": way, "seed": seed} for seed in SEEDS for way in ("float32", "bfloat16 products")
        ],
        run=train_in,
        again={"way": "float32", "seed": 0},
    ),
    "loss scale": Experiment(
        claim="gradients in float16 need a scale that is not too small nor too large, or adapts",
        control="the scale of the loss; data, steps and rates are kept",
        points=[{**scale, "seed": seed} for seed in SEEDS for scale in SCALES],
        run=train_in,
        again={**SCALES[1], "seed": 0},
    ),
    "checkpointing": Experiment(
        claim="with checkpointing a layer keeps its input alone: a sixteenth of what it kept, or, "
        "fused, a twelfth",
        control="with checkpointing or without, in the same call; layer and sentence are kept",
        points=[{"fused": fused, "seed": seed} for seed in SEEDS for fused in (False, True)],
        run=kept,
        again={"fused": False, "seed": 0},
    ),
}
CLAIMS = [
    Claim(
        "with all of its state a training resumes to the last digit; with the weights alone it "
        "does not",
        control="what is restored; the steps are kept",
        seeds="exact",
        where="Stop and resume",
    ),
    Claim(
        "shares weighted with their tokens make the step of one process, a plain mean does not",
        control="the weights of the shares; model and batch are kept",
        seeds="exact, up to rounding",
        where="Several processes",
    ),
]


if __name__ == "__main__":
    main()
