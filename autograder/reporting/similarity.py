"""Pairs of students whose answers are alike beyond chance.

Of every exercise, each pair of students gets a weight for what both wrote: every fragment of eight
tokens counts by how few write it, the stored answers being writers, too, and nothing if it is the
lesson's. A wrong answer of which both were told the same weighs as much as it is rare. Names and
comments that nobody else has are added.

How much is a weight worth? The other pairs of the class say so: nearly all of them worked apart.
The share of pairs that weigh as much is the chance of it, and the chances of all exercises are
combined as Fisher did. A pair is shown if a class of students who work apart shows such a pair less
than once in a thousand times. One exercise alone can never show one. `benchmarks/likeness.py`
measures all this.
"""

import bisect
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from autograder.grading.classroom.item_analysis import Row
from autograder.reporting import fragments
from autograder.reporting.fragments import Fragments
from autograder.reporting.student_answers import Texts
from autograder.reporting.unexplained import is_wrong_answer, without_numbers

CHANCE = 1e-2  # of a class of independent students to show a pair
SHARED_BY_SOME, SHARED_BY_FEW = 0.3, 0.1  # of the class: what more have is not looked at
OF_NAMES = 8.0  # bits at most: whoever shares a formula is led to the same names
RARE = 0.02  # of the pairs: an exercise in which so few agree as much is named
SHOWN = 4

Pair = tuple[str, str]


class Alike(NamedTuple):
    """Two students, the chance of a class to show such a pair, and in what they agree."""

    students: Pair
    chance: float
    exercises: tuple[str, ...]
    wrong: tuple[str, ...]
    names: tuple[str, ...]
    comments: int

    def why(self) -> str:
        """A sentence without the names of the students."""
        said = [f"the same unusual answer to {', '.join(self.exercises)}"]
        if self.wrong:
            said.append(f"the same rare fault in {', '.join(self.wrong)}")
        if self.names:
            said.append(f"names that hardly anybody else has: {', '.join(self.names)}")
        if self.comments:
            said.append(f"{self.comments} comment{'s' if self.comments > 1 else ''} in common")
        return "; ".join(said) + "."


@dataclass
class _Shared:
    """What a pair shares in one exercise, in bits."""

    code: float = 0.0
    wrong: float = 0.0
    names: dict[str, float] = field(default_factory=dict)
    comments: dict[str, float] = field(default_factory=dict)

    @property
    def weight(self) -> float:
        """All together; of the code and what was said of it, the heavier."""
        words = min(OF_NAMES, sum(self.names.values())) + sum(self.comments.values())
        return max(self.code, self.wrong) + words


class Given(NamedTuple):
    """Texts of an exercise that are nobody's: the lesson's own, and stored answers to it."""

    lesson: str
    stored: list[str]


def alike(rows: Sequence[Row], texts: Texts, given: Mapping[str, Given]) -> list[Alike]:
    """The pairs of one lesson whose answers are alike beyond chance, the strangest first."""
    students = sorted(student for student in texts if any(texts[student].values()))
    count = len(students) * (len(students) - 1) // 2
    found: dict[Pair, dict[str, _Shared]] = defaultdict(dict)
    chances: dict[Pair, dict[str, float]] = defaultdict(dict)
    names = sorted({name for student in students for name in texts[student]})
    for name in names:
        own, known = {one: texts[one].get(name, "") for one in students}, given.get(name)
        shared = _exercise(name, rows, own, known or Given("", []))
        weights = sorted(one.weight for one in shared.values())
        for pair, one in shared.items():
            heavier = len(weights) - bisect.bisect_left(weights, one.weight - 1e-9)
            found[pair][name], chances[pair][name] = one, heavier / count
    combined = {pair: count * fisher(each.values(), len(names)) for pair, each in chances.items()}
    shown = sorted((chance, pair) for pair, chance in combined.items() if chance < CHANCE)
    return [_said(pair, chance, found[pair], chances[pair]) for chance, pair in shown]


def fisher(chances: Iterable[float], total: int) -> float:
    """The chance that ``total`` independent chances have a product as small as that of these.

    Those that are not among ``chances`` are 1.

    >>> round(fisher([0.05], 1), 6)
    0.05
    """
    surprise = -sum(math.log(one) for one in chances)
    terms = (surprise**n / math.factorial(n) for n in range(total))
    return math.exp(-surprise) * sum(terms)


def _exercise(
    name: str, rows: Sequence[Row], texts: Mapping[str, str], given: Given
) -> dict[Pair, _Shared]:
    """What each pair shares in an exercise; no entry where that is nothing."""
    shared: dict[Pair, _Shared] = defaultdict(_Shared)
    written = {student: fragments.of(text) for student, text in texts.items()}
    lesson, stored = fragments.of(given.lesson), [fragments.of(text) for text in given.stored]
    _weigh_code(shared, written, lesson, stored)
    _weigh_words(shared, written, [lesson, *stored])
    _weigh_faults(shared, name, [row for row in rows if row["student"] in texts])
    return shared


def _weigh_code(
    shared: dict[Pair, _Shared],
    written: Mapping[str, Fragments],
    lesson: Fragments,
    stored: Collection[Fragments],
) -> None:
    own = {student: text.code - lesson.code for student, text in written.items()}
    having = Counter(one for its in own.values() for one in its)
    having.update(one for text in stored for one in text.code)
    for fragment, pair in _shared_by_some(own, SHARED_BY_SOME):
        shared[pair].code += math.log2((len(written) + len(stored)) / (having[fragment] - 1))


def _weigh_words(
    shared: dict[Pair, _Shared], written: Mapping[str, Fragments], known: Collection[Fragments]
) -> None:
    """Names count half: they come in company. A comment counts its words, too."""
    common = {word for text in known for word in (*text.names, *text.comments)}
    names = {one: text.names - common for one, text in written.items()}
    comments = {one: text.comments - common for one, text in written.items()}
    for word, pair in _shared_by_some(names, SHARED_BY_FEW):
        shared[pair].names[word] = math.log2(len(written)) / 2
    for word, pair in _shared_by_some(comments, SHARED_BY_FEW):
        shared[pair].comments[word] = math.log2(len(written)) + len(word.split())


def _weigh_faults(shared: dict[Pair, _Shared], name: str, rows: Sequence[Row]) -> None:
    """A wrong answer of which several were told the same."""
    told: dict[str, set[str]] = {row["student"]: set() for row in rows}
    for row in rows:
        for part in row["exercises"]:
            if part["name"] == name and is_wrong_answer(row, part):
                told[row["student"]].add(without_numbers(part["reason"]))
    having = Counter(reason for reasons in told.values() for reason in reasons)
    for reason, pair in _shared_by_some(told, SHARED_BY_SOME):
        shared[pair].wrong = -math.log2((having[reason] - 1) / (len(rows) - 1))


def _shared_by_some(
    having: Mapping[str, Collection[Hashable]], share: float
) -> Iterable[tuple[Any, Pair]]:
    """Each thing that no more than a share of the class has, with each pair of those who do."""
    most = max(2, share * len(having))
    owners = defaultdict(list)
    for student in sorted(having):
        for thing in having[student]:
            owners[thing].append(student)
    for thing, students in owners.items():
        if 2 <= len(students) <= most:
            for pair in itertools.combinations(students, 2):
                yield thing, pair


def _said(
    pair: Pair, chance: float, found: Mapping[str, _Shared], chances: Mapping[str, float]
) -> Alike:
    rare = sorted(chances, key=lambda name: (chances[name], name))
    least = [name for number, name in enumerate(rare) if chances[name] <= RARE or not number]
    wrong = [name for name in least if found[name].wrong]
    names = {word: bits for one in found.values() for word, bits in one.names.items()}
    shown = sorted(names, key=lambda word: (-names[word], word))[:SHOWN]
    comments = {word for one in found.values() for word in one.comments}
    return Alike(pair, chance, tuple(least), tuple(wrong), tuple(shown), len(comments))
