"""The questions that a check asks of a right answer, put to another one."""

import torch
from torch import nn

from autograder.building import lesson
from autograder.checking.questions import KEPT, Replied, agree, asked, replies, until_lost
from autograder.checking.registry import Check
from autograder.inside.answer import AnswerLost, LocalAnswer
from tests.autograder.half import GAIN, HALF, Gain, half


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


def test_exceptions_are_replies_and_a_functions_own_name_is_no_difference():
    def one(x):
        raise TypeError("one() takes no tensor")

    def other(x):
        raise TypeError("other() takes no tensor")

    def third(x):
        raise TypeError("another reason")

    given = [list(replies(LocalAnswer(answer), requests(HALF))) for answer in (one, other, third)]
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


def test_the_questions_of_a_whole_lesson_are_kept():
    """A class goes through the exercises in turn: with fewer places, none would be found again."""
    assert max(len(lesson.read(path).exercises) for path in lesson.find()) <= KEPT
