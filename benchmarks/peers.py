"""Training steps of lesson 20's decoder beside those of other libraries: ``make bench-peers``.

    python -m benchmarks.peers [--sizes tiny …] [--rounds 7] [--dtype bfloat16] [--device cpu|cuda]

The others are the lesson's own parts in PyTorch's usual loop, and the decoders of transformers and
of x-transformers, which are no dependencies of the project: what is not installed is left out. All
contestants do the same work, one after the other, in several rounds, with one thread.
Time is processor time: other programs that run beside add less to it than to the clock. A ratio
compares with the course in the same round; shown are the median and, in brackets, the least and the
most. Above 1 the course is faster, or smaller. Memory is that of weights, gradients and the state
of AdamW, and the peak of PyTorch's allocator in a step above that. Before a race, all have the same
weights, and what they compute is compared: exit status 1 if it is not the same.

On CUDA, time is that of the clock, from a GPU that has nothing to do to one that has done its work,
and matrices are multiplied in bfloat16, as the training command does. The batches are larger there.
"""

import argparse
import importlib.util
import os
import statistics
import sys
import time
from datetime import date

import torch

from attention.train.runs.settings import DTYPES
from benchmarks.attention_kernels import peak_mib, wait
from benchmarks.decoders import PEERS, SIZES, batches_of, difference, make

CLOSE = 1e-3  # largest difference of logits of about 1 that is put down to rounding
NEEDS = {"x-transformers": "x_transformers", "transformers, Llama": "transformers"}
INSTALL = "pip install -c constraints.txt -e '.[peers]'"


def present(names):
    """The contestants whose package is installed; says in a sentence how to get the others."""
    found = []
    for name in names:
        if name not in NEEDS or importlib.util.find_spec(NEEDS[name]) is not None:
            found.append(name)
        else:
            print(f"{NEEDS[name]} is not installed, so {name} is left out: {INSTALL}")
    return found


def turns(runs, rounds, device):
    """Seconds of each run's turns, which alternate; who comes first changes from round to round."""
    clock = time.perf_counter if device == "cuda" else time.process_time
    spent = [[] for _ in runs]
    for run in runs:  # nobody pays for the start
        run()
    for turn in range(rounds):
        for place in range(len(runs)):
            place = (turn + place) % len(runs)
            wait(device)
            begin = clock()
            runs[place]()
            wait(device)
            spent[place].append(clock() - begin)
    return spent


def show(made, spent, tokens, device):
    """Print a row for each (name, model, run); `tokens` are those of a turn."""
    print(f"  {'':<24}{'parameters':>12}{'tokens/s':>10}{'ms':>10}{'time ×':>22}", end="")
    print(f"{'MiB':>9}{'memory ×':>10}")
    first = None
    for (name, model, run), seconds in zip(made, spent, strict=True):
        each = [a / b for a, b in zip(seconds, spent[0], strict=True)]
        middle = statistics.median(seconds)
        spread = f"{statistics.median(each):.2f} ({min(each):.2f}–{max(each):.2f})"
        parameters = [one for one in model.parameters() if one.requires_grad]
        held = 4 * sum(one.numel() * one.element_size() for one in parameters)
        mib = held / 2**20 + peak_mib(run, device)
        first = first or mib
        print(
            f"  {name:<24}{sum(one.numel() for one in parameters):>12,}{tokens / middle:>10,.0f}"
            f"{1000 * middle:>10,.1f}{spread:>22}{mib:>9,.0f}{mib / first:>10.2f}",
            flush=True,
        )


def race(name, options):
    """Race all that are installed at one size; returns whether they compute the same."""
    size, device = SIZES[name], options.device
    names, batches = present(["course", *PEERS]), batches_of(name, device)
    step, count = batches[0][1].numel(), len(batches)
    sizes = ", ".join(f"{key}={value}" for key, value in size.items())
    print(f"\n{name}: {sizes}; {step:,} tokens a step, {count} steps a turn")
    fine, few = True, tuple(side[:8] for side in batches[0])
    for peer in names[1:]:
        gap = difference(peer, size, few, device)
        fine &= gap < CLOSE
        much = "" if gap < CLOSE else ", which is too much"
        print(f"  {peer}: largest difference {gap:.0e}{much}", flush=True)
    made = [(one, *make(one, size, batches, device, options.dtype)) for one in names]
    show(made, turns([run for *_, run in made], options.rounds, device), count * step, device)
    return fine


def main(arguments=None):
    """Print the tables; returns 1 if a peer computes something else than the course."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = [name for name in SIZES if name != "mini"]
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=sizes)
    parser.add_argument(
        "--dtype", choices=DTYPES, default="auto", help="of the matrix products in training"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: this machine, or this PyTorch, has none")
    torch.set_num_threads(1)
    card = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"{date.today()}, {card}, 1 thread, torch {torch.__version__}{load}")
    print(f"{options.rounds} rounds; median (least–most)")
    found = [race(name, options) for name in options.sizes]
    if not all(found):
        print("a peer computes something else than the course: see above")
    return int(not all(found))


if __name__ == "__main__":
    sys.exit(main())
