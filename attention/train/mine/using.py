"""`--mine`: train with what a student has built, and say what is theirs and how fast it is."""

import dataclasses
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from attention.train.core.step import Step
from attention.train.corpora.texts import Corpus
from attention.train.mine.trial import Outcome, Trial, clocked, culprit, difference, place
from attention.train.pieces import collected
from attention.train.pieces.collected import Pieces
from attention.train.runs.run_folder import RunFolder
from attention.train.runs.settings import MODERN, Settings
from autograder.pieces import RECORD, MineError, Piece, brief
from autograder.terminal_output import printable

COPY = "mine"  # in the folder of a run: the pieces that it trains with
WIDTH = 100
PATIENCE = 10.0  # seconds: a step that takes longer is not taken again to be timed


@dataclasses.dataclass
class Timed:
    """A student's piece beside the library's: the part of a training, and seconds of both.

    distance  how far the part's result is from the library's, where that is shown
    """

    name: str
    part: str
    library: float
    yours: float
    distance: float | None = None

    @property
    def ratio(self) -> float:
        """How many times as long the part takes with the student's piece."""
        return self.yours / self.library


def choose(
    pieces: Pieces, settings: Settings, corpus: Corpus, device: torch.device
) -> tuple[list[Timed], dict[str, float]]:
    """Put those pieces in use that a training needs and that are right; print what was found.

    What is wrong goes into ``pieces.why``, and the library's stays in its place. Returns the times
    of the pieces, and those of a whole step by whose pieces it is made of.
    """
    trial = Trial(settings, corpus, device, pieces)
    library = trial.run(())
    right = without_wrong(trial, library)
    used = [name for name in pieces.own if any(name in ran for ran in right.ran.values())]
    times = [time_piece(trial, name, right) for name in used]
    whole = _whole_step(trial, used)
    collected.put(pieces, used)
    return times, whole


def without_wrong(trial: Trial, library: Outcome) -> Outcome:
    """The outcome with all pieces that do no harm; the others leave ``own`` with a sentence."""
    pieces = trial.pieces
    outcome, _, _ = _attempt(trial, list(pieces.own), library)
    if outcome is not None:
        return outcome
    # An error may show in a piece that is handed what another made: each is tried by itself first.
    for name in list(pieces.own):
        _, problem, _ = _attempt(trial, [name], library)
        if problem:
            _give_up(pieces, name, problem)
    while True:
        outcome, problem, guilty = _attempt(trial, list(pieces.own), library)
        if outcome is not None:
            return outcome
        _give_up(pieces, guilty or list(pieces.own)[-1], f"with your other pieces, {problem}")


def _attempt(
    trial: Trial, names: Sequence[str], library: Outcome
) -> tuple[Outcome | None, str, str | None]:
    """Try these pieces: the outcome if it is right, else what is wrong, and whose fault it is."""
    try:
        outcome = trial.run(names)
    except Exception as error:
        if not names:
            raise
        return None, _raised(error, trial.pieces), culprit(error, trial.pieces)
    problem = difference(library, outcome, trial.tolerance)
    return (None, problem, None) if problem else (outcome, "", None)


def _raised(error: Exception, pieces: Pieces) -> str:
    where = place(error, pieces)
    told = f" ({pieces.folder.name}/{where[0]}.py, line {where[1]})" if where else ""
    return f"it raises {brief(error)}{told}"


def _give_up(pieces: Pieces, name: str, problem: str) -> None:
    """Leave a piece to the library."""
    pieces.why[name] = problem
    collected.put(pieces, ())
    del pieces.own[name], pieces.library[name]


def time_piece(trial: Trial, name: str, together: Outcome) -> Timed:
    """Time a piece in the first part that uses it, all others being the library's.

    If nothing of the library's calls it, but another piece of the student's does, both are what
    they are when all of the student's are in use.
    """
    part = next(part for part, ran in together.ran.items() if name in ran)
    every = list(trial.pieces.own)
    without, within = list[str](), [name]
    if name not in trial.run([name], part).ran[part]:
        without, within = [other for other in every if other != name], every
    return Timed(name, part, *trial.seconds(without, within, part))


def _whole_step(trial: Trial, used: Sequence[str]) -> dict[str, float]:
    """Seconds of a step on a batch of the training's size: of the student's, and of the library's.

    The last is what a training without --mine takes, with its shortcuts.
    """
    every, task = trial.corpus.ids["train"], trial.task
    longest = max(task.length(row) for row in every[:500])
    batch = trial.tensors(every[: max(1, trial.settings.max_tokens // longest)])
    found = {}
    for whose, names in (("yours", used), ("the library's", ())):
        collected.put(trial.pieces, names)
        found[whose] = _least(trial.stepper(batch))
    collected.take_back()
    model = task.prepare(trial.model(), trial.device)
    fast = Step(model, trial.settings, trial.device, None, task.loss(model, None))
    return {**found, "without --mine": _least(lambda: fast([batch]).item())}


def _least(work: Callable[[], float]) -> float:
    """Seconds of the quickest of two calls, after one that does not count."""
    first = clocked(work)
    return min(clocked(work) for _ in range(2)) if first < PATIENCE else first


def table(pieces: Pieces, times: Sequence[Timed]) -> Table:
    """Every piece that a training uses: whose it is, and how long it takes."""
    made = Table(box=None, pad_edge=False)
    for title in ("piece", "lesson", "part"):
        made.add_column(title)
    for title in ("library ms", "yours ms", "ratio"):
        made.add_column(title, justify="right")
    if far := any(one.distance is not None for one in times):
        made.add_column("furthest", justify="right")
    for one in times:
        lesson = pieces.of(one.name).notebook[:2]
        numbers = (f"{1000 * one.library:.1f}", f"{1000 * one.yours:.1f}", f"{one.ratio:.2f}")
        made.add_row(
            one.name, lesson, one.part, *numbers, *([f"{one.distance:.0e}"] if far else [])
        )
    return made


def report(
    pieces: Pieces, times: Sequence[Timed], whole: dict[str, float], settings: Settings
) -> None:
    """Print which pieces are the student's, which are not and why, and what that costs."""
    console = Console(width=WIDTH, highlight=False)
    report_pieces(console, pieces, times, needed(settings), "a training")
    yours, library = whole["yours"], whole["the library's"]
    console.print(
        f"A step on a whole batch: {1000 * yours:.0f} ms with yours, {1000 * library:.0f} ms with "
        f"the library's ({yours / library:.1f} times as long), "
        f"{1000 * whole['without --mine']:.0f} ms without --mine; "
        f"{settings.steps} steps take about {_time_of(settings.steps * yours)}."
    )


def report_pieces(
    console: Console, pieces: Pieces, times: Sequence[Timed], needed: Sequence[str], work: str
) -> None:
    """Print whose pieces some work, such as "a training", is done with, and why; needed for it."""
    shown = table(pieces, times)
    if times:
        console.print(
            f"Yours, of {pieces.folder}, each timed with the library's others, on one core:"
        )
        console.print(shown)
    else:
        console.print(f"Nothing in {pieces.folder} is used in {work}.")
    for name, why in pieces.why.items():
        console.print(
            printable(f"{name}: {why}; the library's is used."), markup=False, soft_wrap=True
        )
    unused = [name for name in pieces.own if name not in {one.name for one in times}]
    if unused:
        console.print(f"No part of {work}: {len(unused)} more of your pieces.")
    left = [name for name in needed if name not in pieces.own and name not in pieces.why]
    if left:
        console.print(f"The library's, for they are not collected: {', '.join(left)}.")


def _time_of(amount: float) -> str:
    return f"{amount:.0f} s" if amount < 90 else f"{amount / 60:.0f} min"


# What the library's own training calls, by the order of the lessons: what is worth building.
NEEDED = (
    *("masked_attention", "MultiHeadAttention"),
    *("sinusoidal_positions", "LayerNorm", "FeedForward", "EncoderLayer"),
    *("DecoderLayer", "masks_from_tokens", "Translator", "Encoder", "adamw_step"),
    *("label_smoothed_loss", "TrainStep", "Evaluation", "batch_by_tokens", "clip_gradients"),
)
NEEDED_FOR_TEXT = (
    *("masked_attention", "rotary", "adamw_step"),
    *("TrainStep", "Evaluation", "batch_by_tokens", "clip_gradients", "sample_tokens"),
    *("top_p_filter", "language_model_loss", "rms_norm", "SwiGLU", "ModernAttention"),
    *("ModernDecoderLayer", "ModernDecoder", "generate_with_cache"),
)


def needed(settings: Settings) -> tuple[str, ...]:
    """What a training with these settings calls."""
    return NEEDED_FOR_TEXT if settings.model == MODERN else NEEDED


def keep(pieces: Pieces, folder: RunFolder) -> None:
    """Copy the pieces in use into the folder of a run: what it goes on and translates with."""
    used = [pieces.of(name) for name in pieces.own if collected.own(name) is not None]
    copy = folder.path / COPY
    copy.mkdir(exist_ok=True)
    for lesson in {piece.lesson for piece in used}:
        shutil.copy(pieces.folder / f"{lesson}.py", copy)
    record = {"pieces": [dataclasses.asdict(piece) for piece in used]}
    folder.write(f"{COPY}/{RECORD}", json.dumps(record, indent=1).encode() + b"\n")


def use_kept(folder: Path) -> list[Piece]:
    """Put the pieces in use that a run was trained with; returns them, [] if it has none.

    Raises MineError for one that is no longer there.
    """
    if not (folder / COPY).exists():
        collected.take_back()
        return []
    pieces = collected.load(folder / COPY)
    for name, why in pieces.why.items():
        raise MineError(f"{name}, with which {folder} was trained, cannot be used: {why}")
    collected.put(pieces, list(pieces.own))
    return pieces.every


def blame(error: Exception, again: str = "train in another --folder") -> str:
    """One sentence for an error in a student's piece that is in use; '' if it arose elsewhere.

    again  what is to be done when it is mended
    """
    pieces = collected.placed()
    name = culprit(error, pieces) if pieces is not None else None
    if pieces is None or name is None:
        return ""
    notebook = pieces.of(name).notebook
    return (
        f"your {name} failed: {_raised(error, pieces)}; mend it in {notebook}, run `autograder "
        f"collect` again and {again}"
    )
