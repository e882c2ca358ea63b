"""Contestants that take turns, each in a process of its own, and what their turns cost."""

import importlib
import importlib.util
import multiprocessing
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

# name of a package → the module that is imported before memory is counted
PACKAGES = {"x-transformers": "x_transformers", "transformers": "transformers"}
INSTALL = "pip install -c constraints.txt -e '.[peers]'"


@dataclass(frozen=True)
class Contestant:
    """One side of a race.

    name     as the table shows it
    make     (name, **settings) -> a function without arguments, one unit of work; it is called in
             the contestant's process
    package  the package that it needs besides the project's own, or None
    """

    name: str
    make: Callable[..., Callable[[], Any]]
    package: str | None = None


@dataclass
class Result:
    """What the turns of a contestant cost, and what its last unit of work returned."""

    name: str
    cpu: list[float] = field(default_factory=list)  # seconds of processor time, a turn
    wall: list[float] = field(default_factory=list)  # seconds of the clock, a turn
    mib: float = 0.0  # peak above what there was after the imports: of the process, on CUDA of
    # PyTorch's allocator
    value: Any = None


def present(contestants):
    """The contestants whose package is installed; says in a sentence how to get the others."""
    found = []
    for one in contestants:
        if one.package is None or importlib.util.find_spec(PACKAGES[one.package]) is not None:
            found.append(one)
        else:
            print(f"{one.package} is not installed, so {one.name} is left out: {INSTALL}")
    return found


def race(contestants, settings, rounds, device="cpu"):
    """Let the contestants take turns; returns a Result for each.

    settings  keyword arguments of every `make`
    rounds    turns of each; the one that comes first changes from round to round
    device    "cpu" or "cuda": where the work is done, and so how time and memory are taken
    """
    runners, results = [], [Result(one.name) for one in contestants]
    try:
        for one in contestants:
            runners.append(Runner(one, settings, device))
            runners[-1].ask("work")  # nobody pays for the start
        for turn in range(rounds):
            for place in range(len(runners)):
                place = (turn + place) % len(runners)
                cpu, wall, value = runners[place].ask("work")
                results[place].cpu.append(cpu)
                results[place].wall.append(wall)
                results[place].value = value
        for runner, result in zip(runners, results, strict=True):
            result.mib = runner.ask("memory")
    finally:
        for runner in runners:
            runner.end()
    return results


def ratios(results, of="cpu"):
    """How many times as long each takes as the first: (median, least, most) over the rounds."""
    first = getattr(results[0], of)
    each = [[a / b for a, b in zip(getattr(one, of), first, strict=True)] for one in results]
    return [(statistics.median(found), min(found), max(found)) for found in each]


class Runner:
    """A contestant's process."""

    def __init__(self, contestant, settings, device):
        context = multiprocessing.get_context("spawn")
        self.name = contestant.name
        self.pipe, other = context.Pipe()
        arguments = (other, contestant, settings, device)
        self.process = context.Process(target=_serve, args=arguments, daemon=True)
        self.process.start()
        other.close()

    def ask(self, what):
        """Its answer to "work", (cpu, wall, value), or to "memory", its peak in MiB."""
        try:
            self.pipe.send(what)
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            raise SystemExit(f"{self.name} ended before its turn; see above") from None

    def end(self):
        """End the process."""
        self.pipe.close()
        self.process.join(timeout=10)
        if self.process.is_alive():
            self.process.kill()


def _serve(pipe, contestant, settings, device):
    """What a contestant's process does: it works whenever it is asked, until the pipe closes."""
    import torch

    torch.set_num_threads(1)
    if contestant.package is not None:
        importlib.import_module(PACKAGES[contestant.package])
    cuda = torch.cuda if device == "cuda" else None
    before = cuda.memory_allocated() / 2**20 if cuda else resident_mib()
    run = contestant.make(contestant.name, **settings)
    cuda.reset_peak_memory_stats() if cuda else forget_peak()
    while True:
        try:
            asked = pipe.recv()
        except EOFError:
            return
        if asked == "memory":
            peak = cuda.max_memory_allocated() / 2**20 if cuda else peak_mib()
            pipe.send(peak - before)
            continue
        if cuda:
            cuda.synchronize()
        begin, used = time.perf_counter(), time.process_time()
        value = run()
        if cuda:
            cuda.synchronize()
        pipe.send((time.process_time() - used, time.perf_counter() - begin, value))


def _status(name):
    """A number of KiB from Linux's account of this process, as MiB; None elsewhere."""
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            found = [line.split()[1] for line in lines if line.startswith(name)]
    except OSError:
        return None
    return int(found[0]) / 2**10 if found else None


def resident_mib():
    """Memory of this process now; where that is not known, its peak so far."""
    now = _status("VmRSS:")
    return peak_mib() if now is None else now


def peak_mib():
    """The largest memory that this process had."""
    peak = _status("VmHWM:")
    if peak is not None:
        return peak
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB; bytes on a Mac
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def forget_peak():
    """Let the peak count from now on, where Linux allows it."""
    if os.path.exists("/proc/self/clear_refs"):
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
