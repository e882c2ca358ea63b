"""How time and memory of training grow: ``make bench-scaling``.

    python -m benchmarks.scaling [length|batch|layers|vocabulary …] [--rounds 5]

One size is doubled again and again while the others stay, and a power law is fitted: the exponent
is the slope of a straight line through the logarithms, and beside it stands the slope between the
last two sizes. Time is the least processor time of a step of the training command, on one thread;
all sizes take turns. Memory is weights and the state of AdamW, plus the peak of PyTorch's allocator
in a step above that.
"""

import argparse
import math
import os
import statistics
import sys
import time
from datetime import date

import torch

from benchmarks.attention_kernels import peak_mib
from benchmarks.peers.training import step_of_course

BASE = {"d_model": 128, "n_heads": 4, "d_ff": 256, "n_layers": 2, "vocab_size": 1000}
BATCH, LENGTH = 8, 32
SWEEPS = {
    "length": (128, 256, 512, 1024),
    "batch": (4, 8, 16, 32),
    "layers": (1, 2, 4, 8),
    "vocabulary": (2000, 4000, 8000, 16000),
}


def step_at(sweep, value):
    """A step of training with one size changed, and the bytes of its weights and AdamW's state."""
    size, batch, length = dict(BASE), BATCH, LENGTH
    if sweep == "length":
        batch, length = 2, value
    elif sweep == "batch":
        batch = value
    else:
        size[{"layers": "n_layers", "vocabulary": "vocab_size"}[sweep]] = value
    draw = torch.Generator().manual_seed(0)
    shape = (batch, length)
    pair = tuple(torch.randint(3, size["vocab_size"], shape, generator=draw) for _ in range(2))
    model, run = step_of_course(size, [pair])
    held = 3 * sum(p.numel() * p.element_size() for p in model.parameters())
    return run, held


def measure(sweep, values, rounds):
    """Least seconds of processor time, and MiB, at each value."""
    made = [step_at(sweep, value) for value in values]
    seconds = [math.inf] * len(values)
    for run, _ in made:
        run()
    for _ in range(rounds):
        for place, (run, _) in enumerate(made):
            begin = time.process_time()
            run()
            seconds[place] = min(seconds[place], time.process_time() - begin)
    return seconds, [held / 2**20 + peak_mib(run, "cpu") for run, held in made]


def exponent(values, found):
    """The slope of the straight line that fits the logarithms best."""
    x, y = ([math.log(number) for number in numbers] for numbers in (values, found))
    return statistics.linear_regression(x, y).slope


def main(arguments=None):
    """Print a table for each sweep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sweeps", nargs="*", metavar="sweep", help=f"of {', '.join(SWEEPS)}")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    if unknown := set(options.sweeps) - set(SWEEPS):
        parser.error(f"there is no sweep {', '.join(unknown)}; there are: {', '.join(SWEEPS)}")
    torch.set_num_threads(1)
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"{date.today()}, CPU, 1 thread, torch {torch.__version__}{load}")
    print(", ".join(f"{name}={value}" for name, value in BASE.items()), end=", ")
    print(f"{BATCH} sentences of {LENGTH} tokens a side; length: 2 sentences")
    for sweep in options.sweeps or SWEEPS:
        values = SWEEPS[sweep]
        seconds, mib = measure(sweep, values, options.rounds)
        print(f"\n{sweep:<12}" + "".join(f"{value:>10,}" for value in values), end="")
        print("  exponent  last two")
        rows = {"CPU ms": [1000 * one for one in seconds], "MiB": mib}
        for name, found in rows.items():
            slopes = exponent(values, found), exponent(values[-2:], found[-2:])
            shown = "".join(f"{number:>10,.1f}" for number in found)
            print(f"  {name:<10}{shown}" + "".join(f"{one:>10.2f}" for one in slopes), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
