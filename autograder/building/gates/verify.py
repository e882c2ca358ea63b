"""The seven gates that a lesson passes before it is done.

1 the solved notebook earns everything · 2 the blank one earns nothing · 3 every named mistake is
rejected, with its own hint, and costs only its own exercise · 4 every right answer written
differently passes, a careless one loses the care share, each core rests on the text · 5 no solution
line stands in lessons/ · 6 generated files match their source · 7 a broken reference is rejected.
"""

import contextlib
import functools
import gc
import io
import multiprocessing
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import torch
from nbformat import NotebookNode

from autograder import ROOT, CourseError, lessons, marks
from autograder.building.build import build
from autograder.building.gates import care, mutants
from autograder.building.gates.affected import affected_names
from autograder.building.gates.leaks import leaks
from autograder.building.gates.quotes import unsaid
from autograder.building.lesson import Lesson, find, read
from autograder.checking.run_check import accepts, run_check
from autograder.checking.toolbox import registry
from autograder.checking.toolbox.expect import CheckFailed
from autograder.inside.answer import LocalAnswer

SEEDS = (11, 222, 3333)


@dataclass
class Verdict:
    """What the gates found for one lesson. ``failures`` is empty when the lesson is done."""

    lesson: str
    seeds: int = len(SEEDS)  # on which every stored answer was judged
    points: int = 0
    solved: int = 0
    blank: int = 0
    mistakes: int = 0
    rejected: int = 0
    named: int = 0
    alternatives: int = 0
    accepted: int = 0
    careless: int = 0
    leaks: int = 0
    mutants: int = 0
    alive: int = 0  # mutants that the checks accept, without a reason
    failures: list[str] = field(default_factory=list)


def verify(
    names: Collection[str] = (),
    root: Path = ROOT,
    workers: int = 1,
    seeds: int = len(SEEDS),
    with_mutants: bool = True,
) -> Iterator[Verdict]:
    """Take the lessons that ``names`` select through all gates; yields a Verdict for each.

    Every stored answer is judged on ``seeds`` draws of the inputs. Gate 7 is only gone through
    ``with_mutants``. Several workers verify lessons side by side.
    """
    paths = find(names, root)
    workers = min(workers, len(paths))
    one = functools.partial(_verify, root=root, seeds=seeds, with_mutants=with_mutants)
    if workers < 2:
        _use_one_core()
        yield from map(one, paths)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _use_one_core) as pool:
        longest = sorted(paths, key=lambda path: path.stem, reverse=True)  # later lessons take more
        verdicts = {path: pool.submit(one, path) for path in longest}
        yield from (verdicts[path].result() for path in paths)


def _drawn(verdict: Verdict) -> Sequence[int]:
    return (*SEEDS, *range(10_000, 10_000 + verdict.seeds))[: verdict.seeds]


def _use_one_core() -> None:
    torch.set_num_threads(1)
    gc.set_threshold(50_000, 20, 50)  # models come and go: looked for less often, they cost less


def _verify(path: Path, root: Path, seeds: int, with_mutants: bool) -> Verdict:
    verdict = Verdict(path.stem, seeds)
    try:
        lesson = read(path)
        verdict.points = sum(lesson.exercises.values())
        with _silence():
            _gates(lesson, root, verdict, with_mutants)
    except CourseError as error:
        verdict.failures.append(str(error))
    return verdict


def _gates(lesson: Lesson, root: Path, verdict: Verdict, with_mutants: bool) -> None:
    fail = verdict.failures.append
    missing = lesson.exercises.keys() - registry.of_lesson(lesson.name).keys()
    if missing:
        fail(f"no check is registered for {', '.join(sorted(missing))}: is it marked @check?")
        return
    try:
        paths = [lessons.notebook(root, kind, lesson.slug) for kind in ("solutions", "lessons")]
        solved, released = (nbformat.read(path, as_version=4) for path in paths)
    except Exception as error:  # missing, damaged or foreign: nbformat raises a dozen classes
        fail(f"a generated notebook cannot be read: {error}; run `autograder build`")
    else:
        broken = _solved_and_blank(lesson, solved, released, verdict)
        _stored_answers(lesson, solved, released, broken, verdict)
        shown = leaks(lesson, released)
        verdict.leaks = len(shown)
        verdict.failures += shown
    _mutants(lesson, verdict, with_mutants)
    for changed in build([lesson.slug], check=True, root=root).changed:
        fail(f"{changed.relative_to(root)} differs from its source; run `autograder build`")


def _mutants(lesson: Lesson, verdict: Verdict, broken: bool) -> None:
    """Gate 7."""
    items = [registry.of_lesson(lesson.name)[name] for name in lesson.exercises]
    verdict.mutants, failures = mutants.gate(items, lesson.name, SEEDS[0], broken)
    verdict.alive = sum("accepts a mutant" in failure for failure in failures)
    verdict.failures += failures


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Let nothing that answers print or warn about mix with what verify prints."""
    quiet = io.StringIO()
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(quiet),
        contextlib.redirect_stderr(quiet),
    ):
        warnings.simplefilter("ignore")
        yield


def _solved_and_blank(
    lesson: Lesson, solved: NotebookNode, released: NotebookNode, verdict: Verdict
) -> Collection[str]:
    """Gates 1 and 2; returns the names of the exercises that the solved notebook fails."""
    failures = _play(lesson, solved, seeds=_drawn(verdict))
    verdict.failures += [f"the solved notebook fails: {failure}" for failure in failures.values()]
    verdict.solved = _points(lesson, failures)
    blank = _play(lesson, released)
    verdict.blank = _points(lesson, blank)
    for name in lesson.exercises.keys() - blank.keys():
        verdict.failures.append(f"the blank notebook passes the check of {name}")
    return failures.keys()


def _points(lesson: Lesson, failures: Collection[str]) -> int:
    return sum(points for name, points in lesson.exercises.items() if name not in failures)


def _stored_answers(
    lesson: Lesson,
    solved: NotebookNode,
    released: NotebookNode,
    broken: Collection[str],
    verdict: Verdict,
) -> None:
    checks, fail = registry.of_lesson(lesson.name), verdict.failures.append
    for known in registry.strays(lesson.name):
        fail(f"{known.name} answers {known.exercise!r}, which is no exercise of this lesson")
    for name, points in lesson.exercises.items():
        item = checks[name]
        wrong, right = registry.mistakes(item), registry.alternatives(item)
        verdict.careless += len(registry.careless_answers(item))
        seeds = () if name in broken else _drawn(verdict)
        verdict.failures += care.gate(item, points, released, seeds)
        lucky, refused = _surprises(item, wrong, right, _drawn(verdict))
        told = []
        for known in wrong:
            costs = _play(lesson, solved, {name: known.target}, skipped=name).keys() - broken
            named = name not in broken  # a right answer is needed to name a wrong one
            told.append(_mistake(item, known, costs, named, lucky.get(known.name), verdict))
        verdict.failures += unsaid(lesson, name, told)
        verdict.alternatives += len(right)
        verdict.accepted += len(right) - len(refused)
        for known_name, failure in refused.items():
            fail(f"the right answer {known_name} is refused: {failure}")


def _surprises(
    item: registry.Check,
    wrong: Sequence[registry.Answer],
    right: Sequence[registry.Answer],
    seeds: Sequence[int],
) -> tuple[dict[str, int], dict[str, CheckFailed]]:
    """By name, a later seed on which a wrong answer passes; the first failure of a right one.

    All answers go through a seed before the next: its questions are made only once.
    """
    lucky: dict[str, int] = {}
    refused: dict[str, CheckFailed] = {}
    for seed in seeds:
        for known in wrong if seed != seeds[0] else ():  # there they are judged and named
            if accepts(item, LocalAnswer(known.target), seed):
                lucky.setdefault(known.name, seed)
        for known in right:
            failure = run_check(item, LocalAnswer(known.target), seed)
            if failure is not None:
                refused.setdefault(known.name, failure)
    return lucky, refused


def _mistake(
    item: registry.Check,
    known: registry.Answer,
    costs: set[str],
    named: bool,
    lucky: int | None,
    verdict: Verdict,
) -> str:
    """Gate 3: the mistake fails, with its own hint if ``named``; returns what its student reads.

    ``costs`` are the other exercises that fail where it is made; on the seed ``lucky`` it passes.
    """
    verdict.mistakes += 1
    first = _drawn(verdict)[0]
    failure = run_check(item, LocalAnswer(known.target), first, named)
    if failure is None or lucky is not None:
        passed = first if failure is None else lucky
        verdict.failures.append(
            f"{item.name}: the mistake {known.name} passes the check (seed {passed})"
        )
        return ""
    verdict.rejected += not costs
    if costs:
        verdict.failures.append(
            f"{item.name}: the mistake {known.name} also fails {', '.join(sorted(costs))}, which "
            "should not depend on it"
        )
    verdict.named += named and failure.likely == known.hint
    if named and failure.likely != known.hint:
        verdict.failures.append(
            f"{item.name}: the mistake {known.name} is rejected, but read as "
            f"{failure.likely or 'nothing known'!r} (seed {first})"
        )
    return str(failure)


def _play(
    lesson: Lesson,
    notebook: NotebookNode,
    answers: Mapping[str, Any] | None = None,
    seeds: Sequence[int] = SEEDS[:1],
    skipped: str = "",
) -> dict[str, CheckFailed]:
    """Run a notebook's cells here, except demonstrations, and return its failed checks by name.

    ``answers`` replaces the definitions of exercises by other callables; the check of the exercise
    ``skipped`` is left out. A check that fails on several ``seeds`` is returned with the first.
    """
    failures: dict[str, CheckFailed] = {}
    answers = answers or {}
    checks = registry.of_lesson(lesson.name)
    asked = (affected_names(notebook, answers) if answers else checks.keys()) - {skipped}
    if not asked & checks.keys():
        return failures
    import matplotlib

    matplotlib.use("Agg")
    namespace = {"__name__": "__main__"}
    for cell in notebook.cells:
        if cell.cell_type != "code" or marks.is_demo(cell):
            continue
        name = marks.exercise(cell)
        if marks.is_check(cell):
            if name in asked:  # else it is known, or the same as without these answers
                answer = LocalAnswer(namespace.get(name))
                tries = (run_check(checks[name], answer, seed, explain=False) for seed in seeds)
                failure = next((one for one in tries if one is not None), None)
                if failure is not None:
                    failures[name] = failure
        elif name in answers:
            namespace[name] = answers[name]
        else:
            _execute(cell.source, namespace)
    return failures


def _execute(source: str, namespace: dict[str, Any]) -> None:
    """Run a cell. An error in it is no failure of its own: the checks say what it costs."""
    with contextlib.suppress(Exception, SystemExit):
        exec(compile(source, "<cell>", "exec"), namespace)
