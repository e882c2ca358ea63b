"""Training steps of the library beside those of its peers: ``make bench-peers``.

    python -m benchmarks.peers [training|modern …] [--sizes tiny …] [--tokens N] [--rounds 7]
        [--dtype bfloat16] [--device cpu|cuda]

training  the course's Transformer, nn.Transformer, and the stacks of x-transformers
modern    lesson 20's decoder, the lesson's own parts, and the decoders of transformers and
          x-transformers

All contestants of a race do the same work, each in a process of its own, one after the other, in
several rounds, and compute with one thread. Time is processor time: other programs that run beside
add less to it than to the clock. A ratio compares with the course in the same round; shown are the
median and, in brackets, the least and the most. Above 1 the course is faster, or smaller. Memory is
the peak of the process above what it had after its imports. Before a race, all have the same
weights, and what they compute is compared: exit status 1 if it is not the same.

On CUDA, time is that of the clock, from a GPU that has nothing to do to one that has done its work,
memory the peak of PyTorch's allocator, and matrices are multiplied in bfloat16, as the training
command does. The batches are larger there.
"""

import argparse
import os
import sys
from datetime import date

import torch

from attention.train.runs.settings import DTYPES
from benchmarks.peers import modern, training
from benchmarks.peers.racing import present, race, ratios

CLOSE = 1e-3  # largest difference of logits of about 1 that is put down to rounding
RACES = {"training": training, "modern": modern}


def show(results, device, tokens):
    """Print a table of a race; `tokens` are those of a turn."""
    of = "wall" if device == "cuda" else "cpu"
    print(f"  {'':<24}{'tokens/s':>10}{'CPU ms':>10}{'wall ms':>10}{'time ×':>22}", end="")
    print(f"{'MiB':>9}{'memory ×':>10}")
    for one, (middle, least, most) in zip(results, ratios(results, of), strict=True):
        spent = {"cpu": sorted(one.cpu)[len(one.cpu) // 2]}
        spent["wall"] = sorted(one.wall)[len(one.wall) // 2]
        spread = f"{middle:.2f} ({least:.2f}–{most:.2f})"
        print(
            f"  {one.name:<24}{tokens / spent[of]:>10,.0f}{1000 * spent['cpu']:>10,.1f}"
            f"{1000 * spent['wall']:>10,.1f}{spread:>22}"
            f"{one.mib:>9,.0f}{one.mib / results[0].mib if results[0].mib else 1:>10.2f}",
            flush=True,
        )


def run(race_name, size_name, options):
    """Race all that are installed at one size; returns whether they compute the same."""
    module, device = RACES[race_name], options.device
    size, contestants = module.SIZES[size_name], present(module.CONTESTANTS)
    batches = module.batches_of(size_name, device, options.tokens)
    tokens, count = module.real_tokens(batches), len(batches)
    sizes = ", ".join(f"{key}={value}" for key, value in size.items())
    print(f"\n{race_name}, {size_name}: {sizes}; {tokens / count:,.0f} tokens a step, ", end="")
    print(f"{count} steps a turn")
    fine, few = True, tuple(side[:8] for side in batches[0])
    for one in contestants[1:]:
        gap = module.difference(one.name, size, few, device)
        fine &= gap < CLOSE
        much = "" if gap < CLOSE else ", which is too much"
        print(f"  {one.name}: largest difference {gap:.0e}{much}", flush=True)
    settings = {"size": size, "batches": batches, "device": device, "dtype": options.dtype}
    results = race(contestants, settings, options.rounds, device)
    show(results, device, tokens)
    for one in results:
        note = module.DIFFERS.get(one.name, "")
        print(f"  {one.name}: {one.value[0]:,} parameters{note and ', ' + note}", flush=True)
    return fine


def main(arguments=None):
    """Print the tables; returns 1 if a peer computes something else than the course."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("races", nargs="*", metavar="race", help=f"{', '.join(RACES)}; all if none")
    sizes = [name for name in training.SIZES if name != "mini"]
    parser.add_argument("--sizes", nargs="+", choices=training.SIZES, default=sizes)
    parser.add_argument(
        "--tokens", type=int, metavar="N", help="tokens of a batch of `training` on each side"
    )
    parser.add_argument(
        "--dtype", choices=DTYPES, default="auto", help="of the matrix products in training"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args(arguments)
    if unknown := set(options.races) - set(RACES):
        parser.error(f"there is no race {', '.join(unknown)}; there are: {', '.join(RACES)}")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: this machine, or this PyTorch, has none")
    card = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"{date.today()}, {card}, 1 thread, torch {torch.__version__}{load}")
    print(f"{options.rounds} rounds; median (least–most)")
    fine = True
    for name in options.races or RACES:
        for size in options.sizes:
            fine &= run(name, size, options)
    if not fine:
        print("a peer computes something else than the course: see above")
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
