"""The library beside its peers: ``make bench-peers``.

    python -m benchmarks.peers [training|attention|decoding|search|modern …] [--sizes tiny …]
        [--lengths 512 …] [--dtype bfloat16 float32] [--device cpu|cuda]

All contestants of a race do the same work, each in a process of its own, one after the other, in
several rounds, and compute with one thread. Time is processor time: other programs that run beside
add less to it than to the clock. The search is also run with two threads, and timed by the clock
then. A ratio compares with the course in the same round; shown are the median and, in brackets, the
least and the most. Above 1 the course is faster, or smaller. Memory is the peak of the process
above what it had after its imports. Before a race, the peers get the course's weights, and what
they compute is compared: exit status 1 if it is not the same, or if a peer fails.

On CUDA, where there is no search, time is that of the clock, from a GPU that has nothing to do to
one that has done its work, and memory the peak of PyTorch's allocator. Training multiplies matrices
in bfloat16 there, as the training command does; attention and decoding stay in float32. The batches
are larger. ``--dtype`` sets the type in training; with two types each library runs in both, so that
each can be judged by the one that suits it.
"""

import argparse
import os
import sys
from datetime import date

import torch

from attention.provided.data.tokens import PAD
from attention.train.runs.settings import DTYPES
from benchmarks.peers import attention, decoding, modern, search, training, writing
from benchmarks.peers.racing import differences, present, race, ratios

CLOSE = 1e-3  # largest difference of logits of about 1 that is put down to rounding
UNITS = {128: 40, 512: 12, 2048: 2}  # calls of an attention in a turn


def show(results, device, tokens=None, units=1, threads=1):
    """Print a table of a race; `tokens` are those of one unit of work."""
    of = "wall" if device == "cuda" or threads > 1 else "cpu"
    speed = "tokens/s" if tokens else ""
    heads = f"{speed:>10}{'CPU ms':>10}{'wall ms':>10}{'time ×':>22}{'MiB':>9}{'memory ×':>10}"
    print(f"  {'':<24}{heads}")
    for one, (middle, least, most) in zip(results, ratios(results, of), strict=True):
        cpu, wall = (sorted(spent)[len(spent) // 2] / units for spent in (one.cpu, one.wall))
        rate = f"{tokens / {'cpu': cpu, 'wall': wall}[of]:,.0f}" if tokens else ""
        spread = f"{middle:.2f} ({least:.2f}–{most:.2f})"
        print(
            f"  {one.name:<24}{rate:>10}{1000 * cpu:>10,.1f}{1000 * wall:>10,.1f}{spread:>22}"
            f"{one.mib:>9,.0f}{one.mib / results[0].mib if results[0].mib else 1:>10.2f}",
            flush=True,
        )


def agree(module, contestants, *arguments, close=CLOSE):
    """Say how far each peer is from the course; returns whether that is rounding everywhere."""
    gaps = differences(module.difference, [one.name for one in contestants[1:]], *arguments)
    for name, gap in gaps.items():
        much = "" if gap < close else ", which is too much"
        print(f"  {name}: largest difference {gap:.0e}{much}", flush=True)
    return all(gap < close for gap in gaps.values())


def race_training(options):
    """Training steps of a Transformer at every size; returns whether all compute the same."""
    fine = True
    libraries = present(training.CONTESTANTS)
    contestants = training.in_types(libraries, options.dtype)
    for name in options.sizes:
        size, (tokens, count) = training.SIZES[name], training.tokens_of(name, options.device)
        tokens = options.tokens or tokens
        batches = training.make_batches(size, tokens, count)
        real = training.real_tokens(batches)
        sizes = ", ".join(f"{key}={value}" for key, value in size.items())
        print(
            f"\ntraining, {name}: {sizes}; {real / count:,.0f} tokens a step, {count} steps a turn"
        )
        fine &= race_steps(training, libraries, contestants, size, batches, options)
    return fine


def race_steps(module, libraries, contestants, size, batches, options):
    """Steps on some batches, after a comparison; returns whether all compute the same."""
    few = tuple(side[:8] for side in batches[0])
    fine = agree(module, libraries, size, few, options.device)
    settings = {"size": size, "batches": batches, "device": options.device}
    results = race(contestants, settings, options.rounds, device=options.device)
    show(results, options.device, module.real_tokens(batches))
    for one in results:
        note = module.DIFFERS.get(one.name.partition(",")[0], "")
        print(f"  {one.name}: {one.value[0]:,} parameters{note and ', ' + note}", flush=True)
    return fine and len(results) == len(contestants)


def race_modern(options):
    """Lesson 20's decoder at every size: training steps, then writing."""
    fine = True
    libraries, writers = present(modern.CONTESTANTS), present(writing.CONTESTANTS)
    contestants = training.in_types(libraries, options.dtype, modern.make)
    for name in options.sizes:
        size, batches = modern.SIZES[name], modern.make_batches(name, options.device)
        sizes = ", ".join(f"{key}={value}" for key, value in size.items())
        tokens = batches[0][0].numel()
        print(f"\nmodern, {name}: {sizes}; {tokens:,} tokens a step, {len(batches)} steps a turn")
        fine &= race_steps(modern, libraries, contestants, size, batches, options)
        for texts in writing.TEXTS:
            print(f"\nwriting, {name}: {writing.LENGTH} tokens of each text, {texts} side by side")
            settings = {"size": size, "texts": texts, "device": options.device}
            results = race(writers, settings, options.rounds, device=options.device)
            show(results, options.device, texts * writing.LENGTH)
            fine &= same_texts(results) and len(results) == len(writers)
    return fine


def same_texts(results):
    """Say how many tokens are the course's; returns whether nearly all are."""
    fine, mine = True, sum(results[0].value, [])
    for one in results[1:]:
        same = sum(a == b for a, b in zip(mine, sum(one.value, []), strict=True))
        print(f"  {one.name}: {same} of {len(mine)} tokens are the course's")
        fine &= same >= 0.9 * len(mine)
    return fine


def race_attention(options):
    """One layer of attention at every length, with and without a causal mask."""
    fine = True
    contestants = present(attention.CONTESTANTS)
    for T in options.lengths:
        for causal in (False, True):
            shape = f"B={attention.BATCH}, d_model={attention.D_MODEL}, H={attention.N_HEADS}"
            print(f"\nattention, T={T}, {'causal' if causal else 'no mask'}, {shape}, both ways")
            fine &= agree(attention, contestants, T, causal, options.device)
            settings = {"T": T, "causal": causal, "device": options.device}
            units, device = UNITS[T], options.device
            results = race(contestants, settings, options.rounds, units, device=device)
            show(results, device, units=units)
            fine &= len(results) == len(contestants)
    for name, note in attention.DIFFERS.items():
        print(f"  {name}: {note}")
    return fine


def race_decoding(options):
    """Beam search at the sizes of the training."""
    fine = True
    contestants = present(decoding.CONTESTANTS)
    for name in options.sizes:
        size, sentences = training.SIZES[name], 8 if name == "base" else 64
        print(f"\nbeam search, {name}: {sentences} sentences, beam of {decoding.BEAM}")
        settings = {"size": size, "sentences": sentences, "device": options.device}
        results = race(contestants, settings, options.rounds, device=options.device)
        show(results, options.device, sum(map(len, results[0].value)))
        for one in results[1:]:
            same = sum(a == b for a, b in zip(results[0].value, one.value, strict=True))
            print(f"  {one.name}: {same} of {sentences} translations are the course's")
            fine &= same >= 0.9 * sentences
        fine &= len(results) == len(contestants)
    return fine


def race_search(options):
    """Passages to vectors on one and two threads, with padding and almost without."""
    if options.device == "cuda":
        print("\nsearch: its encoder is for the CPU, so there is no race on CUDA")
        return True
    fine = True
    contestants = present(search.CONTESTANTS)
    for ordered in (False, True):
        batches = search.passages(ordered)
        real, empty = sum((ids != PAD).sum().item() for ids in batches), search.padding(batches)
        how = "of like lengths" if ordered else "as they come"
        fine &= agree(search, contestants, ordered, close=search.CLOSE)
        for threads in (1, 2):
            print(
                f"\nsearch, {search.PASSAGES} passages {how}, {real:,} tokens, {empty:.0%} of all "
                f"places padding, {threads} thread{'s' if threads > 1 else ''}"
            )
            settings = {"ordered": ordered}
            results = race(contestants, settings, options.rounds, threads=threads)
            show(results, options.device, real, threads=threads)
            fine &= len(results) == len(contestants)
    return fine


RACES = {
    "training": race_training,
    "attention": race_attention,
    "decoding": race_decoding,
    "search": race_search,
    "modern": race_modern,
}


def main(arguments=None):
    """Print the tables; returns 1 if a peer computes something else than the course."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "races", nargs="*", metavar="race", help=f"{', '.join(RACES)}; default: all"
    )
    sizes = [name for name in training.SIZES if name != "mini"]
    parser.add_argument("--sizes", nargs="+", choices=training.SIZES, default=sizes)
    parser.add_argument(
        "--tokens", type=int, metavar="N", help="tokens of a training batch on each side"
    )
    parser.add_argument(
        "--dtype",
        nargs="+",
        choices=DTYPES,
        default=["auto"],
        help="of the matrix products in training; of several, all take part in one race, and the "
        "ratios compare with the course in the first",
    )
    parser.add_argument("--lengths", nargs="+", type=int, choices=UNITS, default=[*UNITS])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args(arguments)
    if unknown := set(options.races) - set(RACES):
        parser.error(f"there is no race {', '.join(unknown)}; there are: {', '.join(RACES)}")
    if options.tokens is not None and options.tokens < 64:
        parser.error(f"--tokens {options.tokens}: a batch has no room for a sentence; at least 64")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: this machine, or this PyTorch, has none")
    card = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"{date.today()}, {card}, 1 thread, torch {torch.__version__}{load}")
    print(f"{options.rounds} rounds; median (least–most)")
    fine = [RACES[name](options) for name in options.races or RACES]
    if not all(fine):
        print("a peer failed, or computes something else than the course: see above")
    return int(not all(fine))


if __name__ == "__main__":
    sys.exit(main())
