"""What is measured: the commands, and with which share of the time each step may go on."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attention.train.corpora import multi30k
from benchmarks.on_a_gpu import readings
from benchmarks.on_a_gpu.running import Results, StepFailed, shown

AIM = 8_000  # steps of a training: with 8 192 tokens a side, as many as Transformer-Tiny took
EVERY = 250  # steps between two saves of the training command's Multi30k
MARGIN = 0.9  # of the time is filled: steps and saves waver
JUDGING = 0.15  # of a training's time is left for the translations at its end, but not more than
LONGEST_JUDGING = 60.0  # seconds
SMALL = {  # options of the training in a rehearsal
    "--d-model": 16, "--n-heads": 2, "--d-ff": 16, "--n-layers": 1, "--merges": 60,
    "--max-tokens": 512, "--every": 10, "--judged": 4, "--beam": 2,
}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """What was asked for.

    device   "cuda" or "cpu"
    small    a rehearsal: seconds for each step, and no measurement
    corpus   a folder that has Multi30k, or None: the texts are downloaded
    out      the folder of all that is written
    again    what was done or begun before is done from its beginning
    """

    device: str
    small: bool
    corpus: Path | None
    out: Path
    again: bool = False

    @property
    def results(self):
        """The outcomes of the steps so far."""
        return Results(self.out)

    @property
    def run(self):
        """The folder of the training."""
        return self.out / "multi30k"


@dataclass(frozen=True)
class Step:
    """A step: its name, its share of the time, and what makes its commands.

    share     beside those of the steps that are still to be taken; what a step leaves is theirs
    commands  (Plan, seconds) -> (lists of words, a dict of notes for the rows); StepFailed if
              there is nothing to be run
    """

    name: str
    share: float
    commands: Callable


def python(module, *words):
    """A command of a module, with this Python."""
    return [sys.executable, "-m", module, *map(str, words)]


def fetch(plan, seconds):
    """Fetch Multi30k, from the given folder if there is one; for a rehearsal, cut it short."""
    mirror = ["--mirror", plan.corpus.resolve().as_uri()] if plan.corpus else []
    commands = [python("autograder", "data", "fetch", "multi30k", *mirror)]
    if plan.small:
        origin = ["--of", multi30k.FOLDER] if plan.corpus else []
        small = python("benchmarks.on_a_gpu.corpus", "make", plan.out / "small", *origin)
        commands = [*(commands if plan.corpus else []), small]
    return commands, {}


def train(plan, *words):
    """The training command with more words."""
    where = ["--device", plan.device, "--folder", plan.run]
    if plan.small:
        return python("benchmarks.on_a_gpu.corpus", "train", plan.out / "small", *words, *where)
    return python("attention.train", "multi30k", *words, *where)


def settings(plan, steps):
    """The options of a training of so many steps: with 8 000, those of docs/training.md."""
    every = min(saved_every(plan), steps)
    options = {
        "--steps": steps,
        "--max-tokens": 8192,
        "--warmup": min(1000, max(1, steps // 8)),
        "--average": min(10, max(1, steps // every // 3)),
    }
    options |= SMALL if plan.small else {}
    if every != EVERY:
        options["--every"] = every
    return [word for pair in options.items() for word in pair]


def saved_every(plan):
    """After how many steps the training is saved."""
    return SMALL["--every"] if plan.small else EVERY


def aim(plan):
    """How many steps the training takes if the time suffices."""
    return 20 if plan.small else AIM


def probe(plan, seconds):
    """Let the training command say what a step and a save take."""
    return [train(plan, *settings(plan, aim(plan)), "--dry-run")], {}


def affordable(found, started, seconds, most, every=EVERY):
    """How many steps fit into a time; whole saves, if it is more than one. 0: not a single step.

    found    what the dry run foresees
    started  seconds that all took besides its steps and saves, such as reading the corpus
    seconds  of the training command, the translations at its end included
    most     steps
    """
    free = MARGIN * seconds - started - found["new"] - min(JUDGING * seconds, LONGEST_JUDGING)
    steps = max(0, min(most, int(free / (found["step"] + found["save"] / every))))
    return steps if steps == most or steps < every else steps // every * every


def training(plan, seconds):
    """Train as many steps as fit, or go on with a training that was cut."""
    before = plan.results.of("training")
    if (plan.run / "config.json").exists():
        if before is None:
            raise StepFailed(
                f"{shown(plan.run)} holds a training that this command did not begin: choose "
                "another --out"
            )
        if before.status == "cut" and not plan.again:
            first = before.notes.get("first", before.commands)
            return [train(plan, "--resume")], before.notes | {"first": first}
    found, tried = readings.dry_run(plan.results.text("probe")), plan.results.of("probe")
    if found is None or tried is None:
        raise StepFailed("training was not begun: the dry run did not say how long a step takes")
    taken = found["measured"] * (found["step"] * (2 if found["new"] else 1))
    started = max(0, tried.seconds - taken - 2 * found["save"])
    steps = affordable(found, started, seconds, aim(plan), saved_every(plan))
    if steps == 0:
        raise StepFailed(
            f"training was not begun: not one step of {found['step']} s fits into its "
            f"{seconds:.0f} s; give more --minutes"
        )
    shutil.rmtree(plan.run, ignore_errors=True)  # of an earlier call
    notes = found | {"aim": aim(plan), "steps": steps, "seconds": seconds}
    return [train(plan, *settings(plan, steps))], notes


def ladder(plan, seconds):
    """Climb the speed ladder."""
    words = ["--device", plan.device, "--quick"]
    if plan.device == "cuda":
        words.append("--compile")
    if plan.small:
        words += ["--size", "mini", "--tokens", "256", "--seconds", "0.01", "--product", "256"]
    return [python("benchmarks.training", *words)], {}


def peers(plan, seconds):
    """Race the other libraries' training steps."""
    sizes = ["tiny", "small", "base"] if plan.device == "cuda" else ["tiny", "small"]
    words = ["--sizes", *(["mini"] if plan.small else sizes)]
    words += ["--rounds", 1 if plan.small else 3, "--device", plan.device]
    return [python("benchmarks.peers", "training", *words)], {}


def modern(plan, seconds):
    """Race the other libraries' training steps with lesson 20's decoder, and let all write."""
    words = ["--sizes", *(["mini"] if plan.small else ["tiny", "small", "base"])]
    words += ["--rounds", 1 if plan.small else 3, "--device", plan.device]
    return [python("benchmarks.peers", "modern", *words)], {}


def decoding(plan, seconds):
    """Time greedy and beam search, with and without a cache."""
    words = ["--sentences", "10", "--beam", "2"] if plan.small else []
    return [python("benchmarks.decoding", "--device", plan.device, *words)], {}


STEPS = [
    Step("corpus", 0.10, fetch),
    Step("probe", 0.12, probe),
    Step("training", 0.40, training),
    Step("ladder", 0.22, ladder),
    Step("peers", 0.16, peers),
    Step("modern", 0.14, modern),
    Step("decoding", 0.07, decoding),
]
