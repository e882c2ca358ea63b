"""What lesson 18 says of time, memory and recall: ``make bench-efficient-attention``.

    python -m benchmarks.efficient_attention [--to FILE] [--device cpu] [--lengths 512 1024 …]
        [--parts blocks cost step recall] [--budget 4096] [--seeds 0 1 2] [--steps 500]
        [--seconds 2.0]

`blocks`: milliseconds of one forward pass in tiles against their size, beside dense attention.
`cost`: milliseconds and peak memory of one forward pass against the length T, for dense attention,
tiles, a sliding window in blocks, linear attention and PyTorch's fused kernel. A method stops where
four times its last peak would exceed the budget. `step`: microseconds for one more token, recurrent
and with a cache of keys and values, and how far the recurrent form is from the dense one. `recall`:
share of right answers after training, for several widths of queries and keys, three seeds each.

On a CPU everything runs on one thread, and times are CPU time. They are the shortest of several
runs. Parts that are not measured keep what the file holds.
"""

import argparse
import functools
import json
import math
import platform
import sys
from pathlib import Path

import torch
from torch.nn import functional as F

from attention.efficient_attention import (
    flash_attention,
    linear_attention,
    linear_attention_step,
    positive_features,
)
from attention.experiments import efficient_attention as recall
from attention.masked_attention import masked_attention
from attention.provided.files import ROOT
from attention.provided.measuring.memory import peak_mib
from attention.provided.measuring.timing import device_at_hand, shortest

HEADS, D_HEAD, BLOCK, WINDOW = 4, 32, 256, 64
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384, 32768)
CACHED = (256, 1024, 4096, 16384, 65536)  # tokens that were read before the one that is timed
BLOCKS, BLOCKS_AT = (32, 64, 128, 256, 512, 1024, 2048), 2048
D_KS, REACH = (8, 16, 32, 64, 128), 32
LONGER = (16, 4)  # for which width, and how many times as many steps

METHODS = {
    "dense": masked_attention,
    "tiles": lambda q, k, v: flash_attention(q, k, v, BLOCK)[0],
    "fused kernel": F.scaled_dot_product_attention,
    "window": lambda q, k, v: recall.window_in_blocks(q, k, v, WINDOW),
    "linear": linear_attention,
}
KINDS = {
    "dense": masked_attention,
    "linear": linear_attention,
    "window": lambda q, k, v: recall.window_in_blocks(q, k, v, REACH),
}


def blocks(T, device, rounds=8):
    """[[block, milliseconds], …] of tiles at one length; block 0 is dense attention.

    They take turns, so that what else the machine does slows all of them alike.
    """
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, HEADS, T, D_HEAD, device=device) for _ in range(3))
    actions = {0: functools.partial(masked_attention, q, k, v)}
    for block in (size for size in BLOCKS if size <= T):
        actions[block] = functools.partial(flash_attention, q, k, v, block)
    clock = dict.fromkeys(actions, math.inf)
    for _ in range(rounds):
        for block, action in actions.items():
            clock[block] = min(clock[block], shortest(action, device, least=1))
    for block, spent in clock.items():
        print(f"tiles of {block:<5} T={T}: {spent:8.1f} ms", flush=True)
    return [[block, round(spent, 1)] for block, spent in clock.items()]


def cost(lengths, device, budget, seconds):
    """{method: [[T, milliseconds, peak MiB or None], …]}."""
    found = {}
    for name, attention in METHODS.items():
        rows, expected = found.setdefault(name, []), 0.0
        for T in lengths:
            if expected > budget:
                print(f"{name:<14} T={T:<7} would need about {expected:.0f} MiB: stops", flush=True)
                break
            torch.manual_seed(0)
            q, k, v = (torch.randn(1, HEADS, T, D_HEAD, device=device) for _ in range(3))

            def run(attention=attention, q=q, k=k, v=v):
                attention(q, k, v)

            peak = peak_mib(run, device)
            clock = shortest(run, device, seconds)
            rows.append([T, round(clock, 3), None if peak is None else round(peak, 1)])
            shown = "" if peak is None else f"{peak:9.1f} MiB"
            print(f"{name:<14} T={T:<7} {clock:10.2f} ms {shown}", flush=True)
            expected = 4 * (peak or 0.0)
    return found


def step(lengths, device, seconds):
    """Microseconds for one token after so many others, and the recurrent form's error."""
    found = {"recurrent": [], "cache": []}
    for T in lengths:
        torch.manual_seed(0)
        q, k, v = (torch.randn(HEADS, T, D_HEAD, device=device) for _ in range(3))
        state = positive_features(k).mT @ v
        sums = positive_features(k).sum(1)
        one = q[:, -1], k[:, -1], v[:, -1]

        def recurrent(one=one, state=state, sums=sums):
            linear_attention_step(*one, state, sums)

        def cached(q=q, k=k, v=v):
            F.scaled_dot_product_attention(q[None, :, -1:], k[None], v[None])

        for name, run in (("recurrent", recurrent), ("cache", cached)):
            clock = 1000 * shortest(run, device, seconds, least=20)
            found[name].append([T, round(clock, 1)])
            print(f"one token after {T:<7} {name:<10} {clock:9.1f} µs", flush=True)
    found["error"] = {
        str(dtype).removeprefix("torch."): [[T, error_of(T, dtype, device)] for T in (256, 4096)]
        for dtype in ((torch.float32,) if device == "mps" else (torch.float32, torch.float64))
    }
    return found


def error_of(T, dtype, device="cpu"):
    """Largest difference of any context between T steps and the dense form in float64."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(T, D_HEAD, dtype=torch.float64) for _ in range(3))
    similarity = (positive_features(q) @ positive_features(k).T).tril()
    dense = similarity / similarity.sum(1, keepdim=True) @ v
    q, k, v = (x.to(device, dtype) for x in (q, k, v))
    state, sums, contexts = q.new_zeros(D_HEAD, D_HEAD), q.new_zeros(D_HEAD), []
    for one in zip(q, k, v, strict=True):
        context, state, sums = linear_attention_step(*one, state, sums)
        contexts.append(context)
    blocks = recall.causal_linear_attention(positive_features, q, k, v)
    torch.testing.assert_close(torch.stack(contexts), blocks)
    return float(f"{(torch.stack(contexts).cpu().double() - dense).abs().max().item():.2g}")


def remembered(kind, d_k, seed, steps):
    """Train one layer; shares right by how many pairs there are, and by distance, (2 · PAIRS,)."""
    torch.manual_seed(seed)
    model = recall.Recaller(KINDS[kind], d_k)
    recall.train(model, steps, seed, f"{kind}, d_k={d_k}, seed {seed}")
    shares = {
        str(pairs): round(recall.right(model, pairs=pairs)[0], 4)
        for pairs in (4, 8, 16, recall.PAIRS)
    }
    distance = [round(share, 4) for share in recall.right(model)[1][1:].tolist()]
    shown = "  ".join(f"{pairs} pairs {share:.3f}" for pairs, share in shares.items())
    print(f"{kind:<7} d_k={d_k:<4} seed {seed}, {steps} steps: {shown}", flush=True)
    return {"kind": kind, "d_k": d_k, "seed": seed, "steps": steps} | {
        "right": shares,
        "by distance": distance,
    }


def all_recall(seeds, steps, d_ks=D_KS):
    """Rows of `remembered` for every kind and width, and for one width with more steps."""
    jobs = [(kind, d_k, seed, steps) for kind in KINDS for d_k in d_ks for seed in seeds]
    if LONGER[0] in d_ks:
        jobs += [("linear", LONGER[0], seed, LONGER[1] * steps) for seed in seeds]
    return [remembered(*job) for job in jobs]


def machine(device):
    """What was measured on."""
    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
        name = names[0] if names else name
    if device == "cuda":
        name = torch.cuda.get_device_name()
    return {"device": device, "name": name, "torch": torch.__version__.split("+")[0]}


def measure(options):
    """Everything that the file holds, as a dict."""
    kept = json.loads(options.to.read_text(encoding="utf-8")) if options.to.is_file() else {}
    found = {"command": "python -m benchmarks.efficient_attention", "machine": kept.get("machine")}
    if {"blocks", "cost", "step"} & set(options.parts) or not kept:
        found["machine"] = machine(options.device)
    settings = {"heads": HEADS, "d_head": D_HEAD, "block": BLOCK, "window": WINDOW}
    settings |= {"budget": options.budget, "dtype": "float32", "threads": 1}
    settings |= {"keys": recall.KEYS, "values": recall.VALUES, "pairs": recall.PAIRS}
    settings |= {"batch": recall.BATCH, "learning_rate": recall.LEARNING_RATE, "reach": REACH}
    settings |= {"d_model": recall.D_MODEL, "steps": options.steps, "seeds": options.seeds}
    found["settings"] = settings
    timing = options.device, options.seconds
    makers = {
        "blocks": lambda: blocks(min(BLOCKS_AT, max(options.lengths)), options.device),
        "cost": lambda: cost(options.lengths, options.device, options.budget, options.seconds),
        "step": lambda: step(CACHED, *timing),
        "recall": lambda: all_recall(options.seeds, options.steps, options.d_k),
    }
    for part, make in makers.items():
        if part in options.parts:
            found[part] = make()
        elif part in kept:
            found[part] = kept[part]
    return found


def main(arguments=None):
    """Measure, print, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    stored = ROOT / "data" / "efficient_attention.json"
    parser.add_argument("--to", type=Path, default=stored)
    parser.add_argument("--device", choices=["cpu", "cuda", "mps"], default=device_at_hand())
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    every = ["blocks", "cost", "step", "recall"]
    parser.add_argument("--parts", nargs="+", choices=every, default=every)
    parser.add_argument("--budget", type=int, default=4096, help="MiB of peak memory")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=recall.STEPS)
    parser.add_argument("--seconds", type=float, default=2.0, help="of runs for each time")
    parser.add_argument("--d-k", type=int, nargs="+", default=D_KS)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    with torch.inference_mode(mode="recall" not in options.parts):
        found = measure(options)
    text = json.dumps(found, ensure_ascii=False).replace('"cost"', '\n"cost"')
    text = text.replace('{"kind"', '\n{"kind"').replace('"step": {', '\n"step": {')
    options.to.write_text(text + "\n", encoding="utf-8")
    print(f"written to {options.to}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
