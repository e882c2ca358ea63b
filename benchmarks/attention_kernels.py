"""Time and peak memory of the course's attention beside PyTorch's: ``make bench-attention``.

    python benchmarks/attention_kernels.py [--quick] [--lengths 128 512 2048] [--devices cpu cuda]

Every block is one run: its rows take turns, so that a busy machine slows all of them alike, and the
ratios compare with its first row (below 1 is faster, or smaller). Plain attention is shown with
tables (B, H, T, T) that are allocated anew, as they are, and with tables that are kept, the fused
kernel in float32 and, with the conversions, in bfloat16. Time is the shortest of all repeats, since
other programs can only add to it; with --threads 1 it is processor time.
Backward computes the gradients of the inputs. Memory is the peak above what was allocated before,
inputs left out. On a CPU it is that of PyTorch's allocator,
counted by its profiler.
"""

import argparse
import contextlib
import math
import os
import time

import torch
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile

from attention.masked_attention import masked_attention
from attention.scaled_dot_product_attention import scaled_dot_product_attention

BATCH, D_MODEL, N_HEADS = 2, 256, 8


def kernels(T, device):
    """Inputs q, k, v, and named functions of them."""
    shape = (BATCH, N_HEADS, T, D_MODEL // N_HEADS)
    inputs = [torch.randn(shape, device=device, requires_grad=True) for _ in range(3)]

    def loop(q, k, v):
        heads = zip(q.unbind(1), k.unbind(1), v.unbind(1), strict=True)
        return torch.stack([scaled_dot_product_attention(*head) for head in heads], 1)

    return inputs, {
        "F.scaled_dot_product_attention": F.scaled_dot_product_attention,
        "scaled_dot_product_attention": scaled_dot_product_attention,
        "masked_attention": masked_attention,
        "loop over heads": loop,
    }


def tables(T, device):
    """Inputs q, k, v, and plain attention as it is and in tables that nobody has to allocate."""
    inputs, named = kernels(T, device)
    scores, weights = torch.empty(2, BATCH, N_HEADS, T, T, device=device).unbind()

    def kept(q, k, v):
        torch.matmul(q / math.sqrt(q.shape[-1]), k.transpose(-2, -1), out=scores)
        return torch.softmax(scores, dim=-1, out=weights) @ v

    return inputs, {
        "fused": named["F.scaled_dot_product_attention"],
        "plain, new tables": named["masked_attention"],
        "plain, kept tables": kept,
    }


def types(T, device):
    """Inputs q, k, v in float32, and the fused kernel in that type and in bfloat16."""
    inputs, named = kernels(T, device)
    fused = named["F.scaled_dot_product_attention"]

    def short(q, k, v):
        return fused(q.bfloat16(), k.bfloat16(), v.bfloat16()).float()

    return inputs, {"fused, float32": fused, "fused, bfloat16": short}


def action(function, inputs, backward):
    """A function without arguments that runs ``function``, with its gradients if ``backward``."""
    if not backward:

        def forward():
            with torch.no_grad():
                function(*inputs)

        return forward

    def both():
        result = function(*inputs)
        torch.autograd.grad(result, inputs, torch.ones_like(result))

    return both


def wait(device):
    """Let the device finish what it was given."""
    if device == "cuda":
        torch.cuda.synchronize()


def times(actions, device, seconds, least=3):
    """Least milliseconds of each action; the actions take turns."""
    found = [[] for _ in actions]
    alone = device == "cpu" and torch.get_num_threads() == 1
    clock = time.process_time if alone else time.perf_counter
    for run in 3 * actions:  # warm up
        run()
    start = time.perf_counter()
    while time.perf_counter() - start < seconds or len(found[0]) < least:
        for run, samples in zip(actions, found, strict=True):
            wait(device)
            begin = clock()
            run()
            wait(device)
            samples.append(1000 * (clock() - begin))
    return [min(samples) for samples in found]


@contextlib.contextmanager
def quiet():
    """Keep what the profiler writes to stderr, from C++, off the table."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def peak_mib(run, device):
    """Peak MiB that ``run`` holds above what was there before."""
    if device == "cuda":
        wait(device)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        wait(device)
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    with quiet(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        run()
    events = recorded.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    held = peak = 0
    for event in sorted(changes, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak / 2**20


def agree(functions, inputs):
    """Largest difference of any result from the first one's."""
    with torch.no_grad():
        results = [function(*inputs) for function in functions]
    return max((result - results[0]).abs().max().item() for result in results)


def block(kind, make, T, device, backward, seconds):
    """Measure one block and print it."""
    torch.manual_seed(0)
    inputs, named = make(T, device)
    gap = agree(list(named.values()), inputs)
    runs = [action(function, inputs, backward) for function in named.values()]
    clock = times(runs, device, seconds)
    memory = [peak_mib(run, device) for run in runs]
    way = "forward + backward" if backward else "forward"
    print(f"\n{kind}, {device}, T={T}, {way} (largest difference {gap:.0e})")
    print(f"  {'':<36}{'ms':>10}{'ratio':>8}{'MiB':>10}{'ratio':>8}")
    for name, spent, held in zip(named, clock, memory, strict=True):
        more = held / memory[0] if memory[0] else 1.0
        print(f"  {name:<36}{spent:>10.2f}{spent / clock[0]:>8.2f}{held:>10.1f}{more:>8.2f}")


def main(arguments=None):
    """Print all blocks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512, 2048])
    available = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    parser.add_argument("--devices", nargs="+", default=available)
    parser.add_argument("--quick", action="store_true", help="shorter runs, for a first look")
    parser.add_argument("--threads", type=int, help="CPU threads (default: PyTorch's choice)")
    options = parser.parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    seconds = 0.2 if options.quick else 2.0
    print(f"B={BATCH}, d_model={D_MODEL}, H={N_HEADS}, float32, torch {torch.__version__}")
    for device in options.devices:
        threads = f"{torch.get_num_threads()} threads"
        print(f"\n=== {torch.cuda.get_device_name() if device == 'cuda' else f'CPU, {threads}'}")
        for T in options.lengths:
            for backward in (False, True):
                block("attention", kernels, T, device, backward, seconds)
                block("attention, its type", types, T, device, backward, seconds)
            block("attention, its tables", tables, T, device, False, seconds)


if __name__ == "__main__":
    main()
