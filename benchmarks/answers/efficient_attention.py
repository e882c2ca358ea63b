"""Lesson 18: tiles that are skipped, and where the window overtakes the fused kernel."""

import json
import math
import time

import torch

from attention.efficient_attention import flash_attention, online_softmax, tile_scores
from attention.provided.files import ROOT


def skipping(q, k, v, block):
    """Causal attention in tiles, without those that the mask hides as a whole; and their number."""
    contexts, tiles = [], 0
    for i in range(0, q.shape[-2], block):
        rows = q[..., i : i + block, 0]
        context, total = v.new_zeros(*rows.shape, v.shape[-1]), torch.zeros_like(rows)
        largest = torch.full_like(rows, -math.inf)
        for j in range(0, i + 1, block):
            scores = tile_scores(q, k, i, j, block, True)
            context, total, largest = online_softmax(
                context, total, largest, scores, v[..., j : j + block, :]
            )
            tiles += 1
        contexts.append(context / total.unsqueeze(-1))
    return torch.cat(contexts, dim=-2), tiles


@torch.no_grad()
def skipped(T=2048, block=256, rounds=7):
    """Tiles that are left and the time they take, as a share of that of all: the shortest runs."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 4, T, 32) for _ in range(3))
    context, left = skipping(q, k, v, block)
    torch.testing.assert_close(context, flash_attention(q, k, v, block, True)[0])
    clock = {flash_attention: math.inf, skipping: math.inf}
    for _ in range(rounds):
        for run, arguments in ((flash_attention, (block, True)), (skipping, (block,))):
            began = time.process_time()
            run(q, k, v, *arguments)
            clock[run] = min(clock[run], time.process_time() - began)
    share = round(clock[skipping] / clock[flash_attention], 2)
    return {"tiles": (-(-T // block)) ** 2, "left": left, "share of the time": share}


def overtaken():
    """The recorded milliseconds of window and fused kernel beside the length where they cross."""
    cost = json.loads((ROOT / "data" / "efficient_attention.json").read_text("utf-8"))["cost"]
    rows = [
        {"T": T, "window": round(window, 1), "fused kernel": round(fused, 1)}
        for (T, window, _), (_, fused, _) in zip(cost["window"], cost["fused kernel"], strict=False)
    ]
    quicker = [row["window"] < row["fused kernel"] for row in rows]
    first = quicker.index(True)
    return {"before": rows[first - 1], "after": rows[first]}
