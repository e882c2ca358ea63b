"""Where an answer fails is true by construction, small, and known without the right answer's code."""

import importlib
import linecache

import pytest

from autograder.checking.asking.questions import replies, until_lost
from autograder.checking.asking.right_answer import asked
from autograder.checking.diagnosis import place
from autograder.checking.toolbox import registry
from autograder.inside.answer import LocalAnswer

SEED = 3
NADARAYA = """\
def to_weights(scores):
    return torch.softmax(scores, dim=0)

def nadaraya_watson(x, x_train, y_train, bandwidth):
    demand.positive(bandwidth=bandwidth)
    scores = -((x[:, None] - x_train) ** 2) / (2 * bandwidth**2)
    return to_weights(scores) @ y_train
"""
LOOPS = """\
def attention_weights(similarity):
    rows = []
    for row in similarity:
        total = row.sum()
        if total == 0:
            row, total = torch.ones_like(row), 1.0
        rows.append(row / total)
    return torch.stack(rows)
"""
LAYER = """\
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        demand.within(0, eps=eps)
        self.eps = eps * 2
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        return centred / torch.sqrt(variance + self.eps) * self.weight + self.bias
"""
CRASHES = """\
def softmax(scores, dim):
    powers = torch.exp(scores - scores.amax(dim=dim))
    return powers / powers.sum(dim=dim, keepdim=True)
"""
TWICE = """\
def softmax(scores, dim):
    powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return powers / powers.sum(dim=-1, keepdim=True)
"""
CASES = {
    ("nadaraya_watson", NADARAYA): "line 2, `0` in `torch.softmax(scores, dim=0)`",
    ("attention_weights", LOOPS): "line 6, `1.0` in `(torch.ones_like(row), 1.0)`",
    ("LayerNorm", LAYER): "line 5, `eps * 2`",
    ("softmax", CRASHES): "line 2, `scores.amax(dim=dim)`",
    ("softmax", TWICE): "lines 2 and 3, `-1`",
}


def cell(exercise, source):
    """(the check, the answer that a notebook's cell with this source defines)."""
    item, label = registry.find(exercise), f"<cell of {hash(source)}>"
    names = dict(vars(importlib.import_module(f"attention.{item.lesson}")))
    linecache.cache[label] = (len(source), None, source.splitlines(keepends=True), label)
    exec(compile(source, label, "exec"), names)
    return item, LocalAnswer(names[exercise])


def said(item, answer, short=False):
    given = until_lost(replies(answer, asked(item, SEED)[0]))
    return place.said(item, answer, given, SEED, short)


@pytest.mark.parametrize(("exercise", "source"), CASES)
def test_the_smallest_expression_is_found(exercise, source):
    item, answer = cell(exercise, source)
    assert said(item, answer, short=True) == CASES[exercise, source]


def test_both_values_are_those_of_the_smallest_call_that_fails():
    assert said(
        *cell("nadaraya_watson", NADARAYA.replace("dim=0", "dim=1").replace("(2 *", "("))
    ) == (
        "In line 6, `bandwidth ** 2`: with the value of a right answer there, all your results "
        "are right. For ([0], [0, 2], [10, 40], 1.699) yours is 2.885, a right answer has 5.771."
    )
