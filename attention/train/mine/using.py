"""`--mine`: compute with what a student has built, and say what is theirs."""

import dataclasses
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from attention.train.core.step import Step
from attention.train.mine.trial import Outcome, Trial, clocked, culprit, difference, place
from attention.train.pieces import collected
from attention.train.pieces.collected import Pieces
from attention.train.runs.run_folder import RunFolder
from attention.train.runs.settings import MODERN, Settings
from autograder.pieces import RECORD, MineError, Piece, brief
from autograder.terminal_output import printable

COPY = "mine"  # in the folder of a run: the pieces that it trains with
PATIENCE = 10.0  # seconds: a step that takes longer is not taken again to be timed


def choose(trial: Trial) -> list[str]:
    """Put those of a trial's pieces in use that some part calls and that are right.

    Returns their names. What is wrong goes into ``pieces.why``, and the library's takes its place.
    """
    pieces = trial.pieces
    right = without_wrong(trial, trial.run(()))
    used = [name for name in pieces.own if any(name in ran for ran in right.ran.values())]
    collected.put(pieces, used)
    return used


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


def report(pieces: Pieces, used: Sequence[str], needed: Sequence[str], work: str) -> str:
    """Say whose pieces some work, such as "a training", is done with, and why: lines of text."""
    yours = (f"{name} ({pieces.of(name).notebook[:2]})" for name in used)
    said = [f"Yours, of {pieces.folder}: {', '.join(yours)}."]
    if not used:
        said = [f"Nothing in {pieces.folder} is used in {work}."]
    said += [f"{name}: {why}; the library's is used." for name, why in pieces.why.items()]
    if unused := len(pieces.own) - len(used):
        said.append(f"No part of {work}: {unused} more of your pieces.")
    if left := [name for name in needed if name not in pieces.own and name not in pieces.why]:
        said.append(f"The library's, for they are not collected: {', '.join(left)}.")
    return printable("\n".join(said))


def step_times(trial: Trial, used: Sequence[str]) -> str:
    """How long a step on a batch of the training's size takes, with yours and without --mine.

    used  the names of the pieces that are in use, then and afterwards
    """
    every, task, settings = trial.corpus.ids["train"], trial.task, trial.settings
    longest = max(task.length(row) for row in every[:500])
    batch = trial.tensors(every[: max(1, settings.max_tokens // longest)])
    yours = _least(trial.stepper(batch))
    collected.take_back()
    model = task.prepare(trial.model(), trial.device)
    fast = Step(model, settings, trial.device, None, task.loss(model, None))
    without = _least(lambda: fast([batch]).item())
    collected.put(trial.pieces, used)
    return (
        f"A step on a whole batch: {1000 * yours:.0f} ms with yours, {1000 * without:.0f} ms "
        f"without --mine; {settings.steps} steps take about {_time_of(settings.steps * yours)}."
    )


def _least(work: Callable[[], float]) -> float:
    """Seconds of the quickest of two calls, after one that does not count."""
    first = clocked(work)
    return min(clocked(work) for _ in range(2)) if first < PATIENCE else first


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
