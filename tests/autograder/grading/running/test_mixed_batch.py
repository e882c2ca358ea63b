"""A class of one lesson with submissions of every kind, graded in one run."""

import re

import pytest

from autograder.building.lesson import find, read
from autograder.checking.toolbox import registry
from autograder.grading.classroom import sample_class
from autograder.grading.notebook import records
from tests.autograder.attacks import ATTACKS, ground, ours, stock
from tests.autograder.attacks.paper import KERNELS, Paper
from tests.autograder.mixed_class import CASES, EVERYTHING, solved_paper
from tests.needs import needs

pytestmark = [
    pytest.mark.serial,
    pytest.mark.long,
    needs("bubblewrap"),
]
WORKERS = 3  # some wait for a limit, and keep no core busy; honest work must not be too slow
SOLVED = 3
BLANK = 2
POINTS = read(find([KERNELS])[0]).exercises
TOTAL = sum(POINTS.values())
# Tricks that harm the machine or the line to the grader, beside those that fool stock nbgrader.
DANGEROUS = [
    "fork_bomb",
    "thread_bomb",
    "signals_ignored",
    "daemon",
    "kills_its_parent",
    "call_the_machine",
    "forged_reply",
    "lying_shape",
    "deep_message",
    "server_taken_over",
    "unprintable_messages",
    "a_pipe_for_a_notebook",
    "a_device_for_a_notebook",
    "folder_linked_to_the_solution",
    "devices_beside_the_notebook",
]


def hostile():
    """The attacks in the class; all are in that of test_attacks.py."""
    fooling = [name for name, known in stock.recorded().items() if known and known["points"]]
    return [ATTACKS[name] for name in dict.fromkeys([*fooling[::3], *DANGEROUS]) if name in ATTACKS]


class Class:
    """The class, graded in one run; ``kind`` has each student's part in it."""

    def __init__(self, folder):
        self.course = ground.make_course(folder)
        self.traps = ground.make_traps(self.course)
        self.kind, self.known = {}, {}
        self._hand_in()
        self.report = ours.grade(folder, self.traps, "required", WORKERS, "hurry")
        self.output = (folder / "output.txt").read_text(errors="replace")
        self.scores = ground.scores(self.course, KERNELS)

    def _hand_in(self):
        for name, item in registry.of_lesson("kernel_regression").items():
            for known in [*registry.alternatives(item), registry.mistakes(item)[0]]:
                kind = "right" if known.hint is None else "wrong"
                self._answered(f"{kind}_{name}_{known.name}", kind, name, known)
        for one in CASES.values():
            paper = solved_paper(f"damaged_{one.name}", self.traps)
            one.build(paper)
            self._write(paper, "damaged", one)
        for attack in hostile():
            paper = Paper(attack.name, KERNELS, self.traps)
            attack.build(paper)
            self._write(paper, "hostile", attack)
        for number in range(BLANK):
            paper = solved_paper(f"blank_{number}", self.traps)
            paper.notebook = sample_class.blank(KERNELS)
            self._write(paper, "blank", None)
        for number in range(SOLVED):
            self._write(solved_paper(f"right_{number}", self.traps), "right", None)

    def _answered(self, student, kind, name, known):
        paper = solved_paper(student, self.traps)
        paper.notebook = sample_class.handed_in(KERNELS, {name: known})
        self._write(paper, kind, known)

    def _write(self, paper, kind, known):
        self.kind[paper.name], self.known[paper.name] = kind, known
        paper.write(self.course / "class" / "submitted" / paper.name / KERNELS)

    def of(self, kind):
        """Triples (student, score, what is known of them) of one kind."""
        return [
            (student, self.scores[student], self.known[student])
            for student, its in self.kind.items()
            if its == kind
        ]

    def result(self, student):
        """The reasons kept for a student."""
        return records.load(self.course / "class" / "autograded" / student / KERNELS)

    def lost(self, student):
        """Reason by exercise, where points were lost; white space made single."""
        return {
            one.name: " ".join(one.reason.split())
            for one in self.result(student).exercises
            if one.score < one.max
        }


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    made = Class(tmp_path_factory.mktemp("mixed"))
    (told,) = re.findall(r"^not graded: .*", made.output, re.MULTILINE)
    assert f"damaged_renamed/{KERNELS}/" in told and "lies where no work is looked for" in told
    assert made.report["status"] == 1, made.output[-2000:]
    return made


def test_every_student_has_a_score_and_a_reason_from_one_run(graded):
    assert set(graded.scores) == set(graded.kind)
    results = {student: graded.result(student) for student in graded.kind}
    for student, result in results.items():
        assert result.complete, student
        assert (result.score, result.max) == (graded.scores[student], TOTAL), student
        assert all(one.reason for one in result.exercises if one.score < one.max), student
        assert "the grader is to blame" not in str(result), student
    assert re.search(rf"^{len(results)} graded in [\d.]+ s", graded.output, re.MULTILINE)


def test_right_answers_earn_everything_however_they_are_written(graded):
    assert {score for _, score, _ in graded.of("right")} == {TOTAL}


def test_a_wrong_answer_costs_its_exercise_and_is_named(graded):
    assert len(graded.of("wrong")) == len(POINTS)
    for student, score, known in graded.of("wrong"):
        least = TOTAL - POINTS[known.exercise]
        stages = dict(registry.find(known.exercise).stages)
        most = least + sum(stages[name] for name in known.earns or stages)
        assert least <= score <= most and score < TOTAL, student  # care may cost a part of it
        ((name, reason),) = graded.lost(student).items()
        assert name == known.exercise
        assert " ".join(known.hint.split()) in reason, student


def test_a_blank_notebook_earns_nothing_and_is_told_so(graded):
    for student, score, _ in graded.of("blank"):
        assert score == 0
        assert graded.lost(student).keys() == POINTS.keys()
        assert all("nothing here yet" in reason for reason in graded.lost(student).values())


@pytest.mark.parametrize("name", CASES)
def test_damage_costs_what_it_must_and_has_a_sentence(graded, name):
    student, one = f"damaged_{name}", CASES[name]
    lost = graded.lost(student)
    if one.lost == EVERYTHING:
        assert graded.scores[student] == 0
        assert all(one.words in reason for reason in lost.values()), lost
    else:
        assert list(lost) == [one.lost] * bool(one.lost), lost
        assert one.words in lost.get(one.lost, "")


def test_nobody_hostile_earns_anything_or_leaves_anything(graded):
    assert len(graded.of("hostile")) > 25
    assert [student for student, score, _ in graded.of("hostile") if score != 0] == []
    assert graded.report["traces"] == []
    assert graded.report["peak_mib"] < 2000
