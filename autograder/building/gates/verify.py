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

from autograder import ROOT, CourseError, cell_metadata, lessons
from autograder.building.build import build
from autograder.building.gates import mutants, stored_answers
from autograder.building.gates.affected import affected_names
from autograder.building.gates.text import leaks, unsaid_claims, unsaid_quotes
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


def _use_one_core() -> None:
    torch.set_num_threads(1)
    gc.set_threshold(50_000, 20, 50)  # models come and go: looked for less often, they cost less


def _verify(path: Path, root: Path, seeds: int, with_mutants: bool) -> Verdict:
    verdict = Verdict(path.stem, seeds)
    try:
        lesson = read(path)
        verdict.points = sum(lesson.exercises.values())
        with _silence():
            _Gates(lesson, verdict).go_through(root, with_mutants)
    except CourseError as error:
        verdict.failures.append(str(error))
    return verdict


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


class _Gates:
    """A lesson on its way through the gates, and the verdict so far."""

    def __init__(self, lesson: Lesson, verdict: Verdict) -> None:
        self.lesson, self.verdict, self.fail = lesson, verdict, verdict.failures.append
        self.checks = registry.of_lesson(lesson.name)
        self.seeds = (*SEEDS, *range(10_000, 10_000 + verdict.seeds))[: verdict.seeds]
        self.broken: Collection[str] = ()  # names of the exercises that the solved notebook fails

    def go_through(self, root: Path, with_mutants: bool) -> None:
        """All gates, if every exercise has a check."""
        lesson, verdict = self.lesson, self.verdict
        missing = lesson.exercises.keys() - self.checks.keys()
        if missing:
            self.fail(
                f"no check is registered for {', '.join(sorted(missing))}: is it marked @check?"
            )
            return
        try:
            paths = [lessons.notebook(root, kind, lesson.slug) for kind in ("solutions", "lessons")]
            solved, released = (nbformat.read(path, as_version=4) for path in paths)
        except Exception as error:  # missing, damaged or foreign: nbformat raises a dozen classes
            self.fail(f"a generated notebook cannot be read: {error}; run `autograder build`")
        else:
            self._solved_and_blank(solved, released)
            self._stored_answers(solved, released)
            shown = leaks(lesson, released)
            verdict.leaks = len(shown)
            verdict.failures += shown
            said = "\n".join(cell.source for cell in lesson.cells)
            verdict.failures += unsaid_claims(lesson.name, said, root)
        items = [self.checks[name] for name in lesson.exercises]
        verdict.mutants, failures = mutants.gate(items, lesson.name, SEEDS[0], with_mutants)
        verdict.alive = sum("accepts a mutant" in failure for failure in failures)
        verdict.failures += failures
        for changed in build([lesson.slug], check=True, root=root).changed:
            self.fail(
                f"{changed.relative_to(root)} differs from its source; run `autograder build`"
            )

    def _solved_and_blank(self, solved: NotebookNode, released: NotebookNode) -> None:
        """Gates 1 and 2."""
        failures, blank = self._play(solved, seeds=self.seeds), self._play(released)
        for failure in failures.values():
            self.fail(f"the solved notebook fails: {failure}")
        for name, points in self.lesson.exercises.items():
            self.verdict.solved += points * (name not in failures)
            self.verdict.blank += points * (name not in blank)
            if name not in blank:
                self.fail(f"the blank notebook passes the check of {name}")
        self.broken = failures.keys()

    def _stored_answers(self, solved: NotebookNode, released: NotebookNode) -> None:
        """Gates 3 and 4."""
        for known in registry.strays(self.lesson.name):
            self.fail(
                f"{known.name} answers {known.exercise!r}, which is no exercise of this lesson"
            )
        for name, points in self.lesson.exercises.items():
            item, is_broken = self.checks[name], name in self.broken
            wrong, right = registry.mistakes(item), registry.alternatives(item)
            self.verdict.careless += len(registry.careless_answers(item))
            seeds = () if is_broken else self.seeds
            self.verdict.failures += stored_answers.gate(item, points, released, seeds)
            if not is_broken:
                self.verdict.failures += stored_answers.cards(self.lesson, item, self.seeds[0])
            lucky, refused = self._surprises(item, wrong, right)
            told = []
            for known in wrong:
                played = self._play(solved, {name: known.target}, skipped=name)
                costs = sorted(played.keys() - self.broken)
                told.append(self._mistake(item, known, costs, lucky.get(known.name)))
            self.verdict.failures += unsaid_quotes(self.lesson, name, told)
            self.verdict.alternatives += len(right)
            self.verdict.accepted += len(right) - len(refused)
            for known_name, failure in refused.items():
                self.fail(f"the right answer {known_name} is refused: {failure}")

    def _surprises(
        self,
        item: registry.Check,
        wrong: Sequence[registry.Answer],
        right: Sequence[registry.Answer],
    ) -> tuple[dict[str, int], dict[str, CheckFailed]]:
        """By name, a later seed on which a wrong answer passes; the first failure of a right one.

        All answers go through a seed before the next: its questions are made only once.
        """
        lucky: dict[str, int] = {}
        refused: dict[str, CheckFailed] = {}
        for seed in self.seeds:
            for known in wrong if seed != self.seeds[0] else ():  # there they are judged and named
                if accepts(item, LocalAnswer(known.target), seed):
                    lucky.setdefault(known.name, seed)
            for known in right:
                failure = run_check(item, LocalAnswer(known.target), seed, told={})
                if failure is not None:
                    refused.setdefault(known.name, failure)
        return lucky, refused

    def _mistake(
        self, item: registry.Check, known: registry.Answer, costs: Sequence[str], lucky: int | None
    ) -> str:
        """Gate 3: the mistake fails, with its own hint; returns what its student reads.

        ``costs`` are the other exercises that fail where it is made; on ``lucky`` it passes.
        """
        self.verdict.mistakes += 1
        the_mistake, first = f"{item.name}: the mistake {known.name}", self.seeds[0]
        named = item.name not in self.broken  # a right answer is needed to name a wrong one
        failure = run_check(item, LocalAnswer(known.target), first, named, told={})
        if failure is None or lucky is not None:
            passed = first if failure is None else lucky
            self.fail(f"{the_mistake} passes the check (seed {passed})")
            return ""
        if costs:
            self.fail(f"{the_mistake} also fails {', '.join(costs)}, which should not depend on it")
        self.verdict.rejected += not costs
        self.verdict.named += named and failure.likely == known.hint
        if named and failure.likely != known.hint:
            read_as = failure.likely or "nothing known"
            self.fail(f"{the_mistake} is rejected, but read as {read_as!r} (seed {first})")
        return str(failure)

    def _play(
        self,
        notebook: NotebookNode,
        answers: Mapping[str, Any] | None = None,
        seeds: Sequence[int] = SEEDS[:1],
        skipped: str = "",
    ) -> dict[str, CheckFailed]:
        """Run a notebook's cells here, except demonstrations; its failed checks by name.

        ``answers`` replaces the definitions of exercises by other callables; the check of the
        exercise ``skipped`` is left out. A check that fails on several ``seeds`` is returned with
        the first.
        """
        failures: dict[str, CheckFailed] = {}
        answers = answers or {}
        affected = affected_names(notebook, answers) if answers else self.checks.keys()
        asked = affected & self.checks.keys() - {skipped}
        if not asked:
            return failures
        import matplotlib

        matplotlib.use("Agg")
        namespace = {"__name__": "__main__"}
        for cell in notebook.cells:
            if cell.cell_type != "code" or cell_metadata.is_demo(cell):
                continue
            name = cell_metadata.exercise(cell)
            if cell_metadata.is_check(cell):
                answer = LocalAnswer(namespace.get(name))
                # What is not asked is known, or the same as without these answers.
                for seed in seeds if name in asked else ():
                    failure = run_check(self.checks[name], answer, seed, explain=False)
                    if failure is not None:
                        failures[name] = failure
                        break
            elif name in answers:
                namespace[name] = answers[name]
            else:  # an error in a cell is no failure of its own: the checks say what it costs
                with contextlib.suppress(Exception, SystemExit):
                    exec(compile(cell.source, "<cell>", "exec"), namespace)
        return failures
