"""What stands in for the parts of an answer: objects for plain values, and names replaced."""

import pytest
import torch

import attention.provided.stand_ins  # noqa: F401  (its names are known from now on)
from autograder.inside.answer import AnswerRaised, LocalAnswer
from autograder.inside.stand_ins import KEYWORD, STAND_IN, stands_in
from tests.autograder.inside.test_answer import as_cell

LAYER = """
from torch import nn

def Inner(d_model):
    raise RuntimeError("the learner's own part")

class Outer(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.inner = Inner(d_model)

    def forward(self, x):
        return self.inner(x)
"""


@stands_in
def squashed(x):
    return torch.tanh(x)


def test_a_class_is_built_with_a_stand_in_and_the_learners_own_part_is_back_afterwards():
    answer = LocalAnswer(as_cell(LAYER))
    built = answer.build([6], {KEYWORD: {"Inner": "Tanh"}})
    assert list(built.parameters()) == ["inner.W.weight"]
    built.load({"inner.W.weight": torch.eye(6)})
    x = torch.randn(2, 6)
    assert torch.equal(built.call([x], {}).value, x.tanh())
    with pytest.raises(AnswerRaised, match="own part"):
        answer.build([6], {})


def test_a_name_that_was_not_there_is_gone_afterwards():
    answer = LocalAnswer(as_cell("def halve(x):\n    return squash(x) / 2"))
    stand_ins = {KEYWORD: {"squash": "squashed"}}
    assert answer.call([torch.zeros(2)], stand_ins).value.tolist() == [0, 0]
    with pytest.raises(AnswerRaised, match="squash"):
        answer.call([torch.zeros(2)], {})


def test_the_name_is_back_where_the_answer_raises():
    cell = "def squash(x):\n    return 7\ndef use(x):\n    1 / (1 - x)\n    return squash(x)"
    answer = LocalAnswer(as_cell(cell))
    with pytest.raises(AnswerRaised, match="division"):
        answer.call([True], {KEYWORD: {"squash": "squashed"}})
    assert answer.call([False], {}).value == 7


def test_a_description_becomes_a_model():
    """It reads token by token as at once, and complains if it must read twice."""
    table = torch.randn(5, 3)
    model = {STAND_IN: "Fading", "rows": table, "columns": table}
    cell = """
def read(model, tokens, twice):
    whole, _ = model(tokens)
    model.has_read = False
    _, past = model(tokens[:, :2])
    if twice:
        model(tokens)
    return whole, model(tokens[:, 2:], past)[0]
"""
    answer = LocalAnswer(as_cell(cell))
    tokens = torch.tensor([[3, 1, 4, 2]])
    whole, rest = answer.call([model, tokens, False], {}).value
    assert torch.allclose(whole[:, 2:], rest)
    with pytest.raises(AnswerRaised, match="a second time"):
        answer.call([model, tokens, True], {})


def test_arguments_are_not_taken_for_changed():
    choose = {STAND_IN: "Ranked", "rank": 1}
    answer = LocalAnswer(lambda choose, scores: choose(scores))
    reply = answer.call([choose, torch.tensor([[1.0, 3.0, 2.0]])], {})
    assert (reply.value.tolist(), reply.modified) == ([2], [])
