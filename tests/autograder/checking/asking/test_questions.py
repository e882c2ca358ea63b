"""The questions that a check asks of a right answer, put to another one."""

import pytest
import torch
from torch import nn

from autograder.building import lesson
from autograder.checking.asking.questions import KEPT, Replied, Session, agree, replies, until_lost
from autograder.checking.asking.right_answer import asked
from autograder.checking.run_check import run_check
from autograder.checking.toolbox.inputs import Draw
from autograder.checking.toolbox.registry import Check
from autograder.checking.toolbox.student_answer import Student
from autograder.inside.answer import AnswerLost, LocalAnswer
from tests.autograder.half import GAIN, HALF, Gain, half, raiser


def requests(item):
    """What a check asks, without probes."""
    return [question for question in asked(item, 7)[0] if not question.probe]


def test_the_checks_own_questions_come_first_in_their_order():
    questions, wanted = asked(GAIN, 7)
    assert [one.request for one in requests(GAIN)] == [
        "build", "parameters", "load", "train", "call", "train", "gradients",
    ]  # fmt: skip
    assert [one.handle for one in requests(GAIN)] == [0, 1, 1, 1, 1, 1, 1]
    assert not any(one.probe for one in questions[: len(requests(GAIN))])
    assert len(questions) == len(wanted)


def test_replies_of_the_right_answer_are_the_same_every_time():
    for item, right in ((HALF, half), (GAIN, Gain)):
        questions, wanted = asked(item, 7)
        assert agree(replies(LocalAnswer(right), questions), wanted)


def test_modules_are_numbered_as_they_are_built():
    def check(student, draw):
        one, two = student.build(1.0), student.build(2.0)
        x = torch.ones(3)
        two(x), one(x)

    class Keeps(nn.Module):
        def __init__(self, start):
            super().__init__()
            self.start = start

        def forward(self, x):
            return x * self.start

    item = Check("two", "nowhere", check, reference=Keeps)
    given = list(replies(LocalAnswer(Keeps), requests(item)))
    assert [reply.value[0].item() for reply in given[2:]] == [2, 1]


def test_what_was_never_built_is_absent():
    def fails(start):
        raise ValueError("no start")

    given = list(replies(LocalAnswer(fails), requests(GAIN)))
    assert [reply.kind for reply in given] == ["raised"] + ["absent"] * 6
    assert given[0].value == ("ValueError", "no start")


REFUSED, BROKE = ("ValueError", "RuntimeError")


@pytest.mark.parametrize(
    ("kind", "one", "other", "alike"),
    [  # a refusal by its numbers, everything else by its words
        (REFUSED, "row 3 sums to 1.5000, not to 1", "1.5 in row 3", True),
        (REFUSED, "row 3 sums to 1.5", "row 4 sums to 1.5", False),
        (REFUSED, "row 3 sums to 1.5, not to 1", "a row does not sum to 1", False),
        (REFUSED, "an unknown name", "no such kernel", True),
        (BROKE, "mat1", "stack", False),
    ],
)
def test_when_two_exceptions_say_the_same(kind, one, other, alike):
    left, right = (Replied("raised", (kind, words)) for words in (one, other))
    assert left.agrees(right) is right.agrees(left) is alike


def test_a_functions_own_name_is_no_difference():
    said = ("one() takes no tensor", "other() takes no tensor", "another reason")
    given = [list(replies(LocalAnswer(raiser(TypeError(one))), requests(HALF))) for one in said]
    assert agree(given[0], given[1])
    assert not agree(given[0], given[2])


def test_the_replies_end_where_the_answer_is_lost():
    class Lost(LocalAnswer):
        calls = 0

        def call(self, *details, **how):
            Lost.calls += 1
            if Lost.calls == 3:
                raise AnswerLost("it ended")
            return super().call(*details, **how)

    assert len(until_lost(replies(Lost(half), requests(HALF)))) == 2


def test_a_check_that_refuses_its_reference_asks_nothing():
    broken = Check("half", "nowhere", HALF.run, reference=lambda x: x / 3)
    assert asked(broken, 7) == ((), ())
    assert asked(Check("half", "nowhere", HALF.run), 7) == ((), ())


def test_tiny_numbers_count_only_where_replies_are_compared_exactly():
    none, tiny = (Replied("value", torch.tensor([one, 1.0]).double()) for one in (0.0, 1e-12))
    assert none.agrees(tiny)
    assert not none.agrees(tiny, exactly=True)


class Counted(LocalAnswer):
    """A function that counts how often it is asked."""

    def __init__(self, target):
        super().__init__(target)
        self.times = 0

    def call(self, *details, **how):
        self.times += 1
        return super().call(*details, **how)

    def gradients(self, *details, **how):
        self.times += 1
        return super().gradients(*details, **how)


def test_whether_right_or_wrong_an_answer_is_asked_each_question_once(known):
    questions, _ = asked(HALF, 7)
    for target in (half, lambda x: x / 3):
        answer = Counted(target)
        failure = run_check(HALF, answer, 7)
        assert (failure is None) == (target is half)
        assert answer.times == len(questions)


def test_replies_of_the_check_and_those_asked_for_later_are_those_of_a_fresh_start():
    for item, right in ((HALF, half), (GAIN, Gain)):
        questions, wanted = asked(item, 7)
        session = Session(LocalAnswer(right))
        item.run(Student(session.recorder()), Draw(7))
        assert agree(session.all_replies(questions), wanted)


def asks_by_the_sign(student, draw):
    """A check may look at a result before it goes on: what came back then answers no question."""
    x = torch.ones(2)
    if student(x).sum() > 0:
        student(x, 2.0)
    else:
        student.gradients(x)


def hands_on(student, draw):
    student(student(torch.ones(2)))


@pytest.mark.parametrize(
    ("check", "times", "second"), [(asks_by_the_sign, -1, [-2, -2]), (hands_on, 3, [3, 3])]
)
def test_all_is_asked_anew_where_the_check_asks_something_else(check, times, second):
    item = Check("times", "nowhere", check, reference=lambda x, factor=1.0: x * factor)
    questions, _ = asked(item, 7)

    def answer(x, factor=1.0):
        return times * x * factor

    session = Session(LocalAnswer(answer))
    item.run(Student(session.recorder()), Draw(7))
    given = list(session.all_replies(questions))
    assert [one.value.tolist() for one in given[:2]] == [[times, times], second]
    assert agree(given, replies(LocalAnswer(answer), questions))


def test_what_a_check_does_to_a_result_changes_no_reply():
    def check(student, draw):
        student(torch.ones(2)).zero_()

    item = Check("same", "nowhere", check, reference=lambda x: x * 1)
    questions, _ = asked(item, 7)
    session = Session(LocalAnswer(lambda x: x * 1))
    item.run(Student(session.recorder()), Draw(7))
    assert next(session.all_replies(questions)).value.tolist() == [1, 1]


def test_the_questions_of_a_whole_lesson_are_kept():
    """A class goes through the exercises in turn: with fewer places, none would be found again."""
    assert max(len(lesson.read(path).exercises) for path in lesson.find()) <= KEPT
