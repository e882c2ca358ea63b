"""Where an answer fails is true by construction, small, and known without the right code."""

import importlib
import linecache
import re
from unittest.mock import Mock

import pytest

from autograder.checking.asking import recordings
from autograder.checking.asking.questions import replies, until_lost
from autograder.checking.asking.right_answer import asked
from autograder.checking.diagnosis import place
from autograder.checking.toolbox import registry
from autograder.inside.answer import AnswerLost, LocalAnswer
from autograder.inside.messages.values import leaves, same
from autograder.releasing import record

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
APPENDED = """\
def leave_one_out_loss(x_train, y_train, bandwidth):
    demand.positive(bandwidth=bandwidth), demand.counts(2, T_k=len(x_train))
    errors = []
    for x, y, other in zip(x_train, y_train, ~torch.eye(len(x_train), dtype=bool)):
        weights = softmax(-((x - x_train[other]) ** 2) / (2 * bandwidth), dim=0)
        errors.append((weights @ y_train[other] - y) ** 2)
    return sum(errors) / len(errors)
"""
TIES = "line 6, `weights @ y_train[x_train != x]`"  # in pass 1 the values differ by rounding alone
NOT_SQUARED = NADARAYA.replace("dim=0", "dim=1").replace("(x[:, None] - x_train) ** 2", "DISTANCE")
NOT_SQUARED = NOT_SQUARED.replace("(DISTANCE)", "(x[:, None] - x_train).abs()")
CUT = NADARAYA.replace("dim=0", "dim=1").replace("- x_train)", "- x_train.diff())")
CASES = {
    ("nadaraya_watson", NOT_SQUARED): "line 6, `x[:, None] - x_train`",  # and not `x_train`
    ("nadaraya_watson", NADARAYA): "line 2, `0` in `torch.softmax(scores, dim=0)`",
    ("nadaraya_watson", CUT): "line 6, `x_train.diff()`",  # which has one number less
    ("attention_weights", LOOPS): "line 6, `1.0` in `(torch.ones_like(row), 1.0)`",
    ("LayerNorm", LAYER): "line 5, `eps * 2`",
    ("softmax", CRASHES): "line 2, `scores.amax(dim=dim)`",
    ("softmax", TWICE): "lines 2 and 3, `-1`",
    ("leave_one_out_loss", APPENDED): "line 5, `2 * bandwidth`",  # and not `sum(errors)`
    ("leave_one_out_loss", APPENDED.replace("[other]", "[x_train != x]")): TIES,
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
    return place.where_it_fails(item, answer, given, SEED, short)


@pytest.mark.parametrize(("exercise", "source"), CASES)
def test_the_smallest_expression_is_found(exercise, source):
    item, answer = cell(exercise, source)
    assert said(item, answer, short=True) == CASES[exercise, source]


WITHOUT_TWO = NADARAYA.replace("dim=0", "dim=1").replace("(2 * bandwidth**2)", "bandwidth**2")


def test_both_values_are_those_of_the_smallest_call_that_fails():
    assert said(*cell("nadaraya_watson", WITHOUT_TWO)) == (
        "In line 6, `bandwidth ** 2`: with the value of a right answer there, all your results "
        "are right. For ([0], [0, 2], [10, 40], 1.699) yours is 2.885, a right answer has 5.771."
    )


def test_with_two_faults_the_first_stage_has_a_place_of_its_own():
    source = (
        "def softmax(scores, dim):\n"
        "    powers = scores.exp()\n"
        "    return powers / powers.sum(dim=1, keepdim=True)\n"
    )
    told = said(*cell("softmax", source))
    line = "In line 3, `1` in `powers.sum(dim=1, keepdim=True)`: with the value of "
    assert told.startswith(line)
    assert "all results of “ordinary scores” are right" in told


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lesson", ["getting_started", "kernel_regression"])
def test_with_a_right_value_there_all_that_is_asked_is_right(lesson, monkeypatch):
    """Of every stored mistake: what is placed is asked once more, and compared by itself."""
    put, exchanged = [], LocalAnswer.exchanged
    monkeypatch.setattr(
        LocalAnswer, "exchanged", lambda *details: put.append(details) or exchanged(*details)
    )
    placed = 0
    for item in registry.of_lesson(lesson).values():
        questions, wanted = asked(item, SEED)
        core = [n for n, one in enumerate(questions) if place._is_core(one)]
        for known in registry.mistakes(item) if item.has_one_right_answer else ():
            if "all your results" in said(item, LocalAnswer(known.target)):
                placed += 1
                given = replies(exchanged(*put[-1]), [questions[n] for n in core])
                for n, got in zip(core, given, strict=True):
                    assert got.kind == wanted[n].kind
                    assert got.kind == "raised" or same(got.value, wanted[n].value)
    assert placed > 5


@pytest.mark.parametrize(
    "source",
    [
        "def companions_that_matter(translate, text, others):\n    return [n for n, other in "
        "enumerate(others) if translate([text, other])[0] != translate([text])[0]]\n",
        "def uniform_average(values):\n    return values.mean()\n",
        "def uniform_average(values):\n    result = values.sum(0)\n    return result\n",
        "calls = []\ndef uniform_average(values):\n    calls.append(1)\n"
        "    return values.sum(0) / (len(values) if len(calls) > 2 else 7)\n",
    ],
)
def test_the_whole_result_is_no_place_nor_what_was_kept(source):
    assert said(*cell(re.search(r"def (\w+)", source)[1], source)) == ""


def test_a_value_that_makes_a_loop_endless_is_none(capsys):
    source = """\
def uniform_average(values):
    count = values.shape[1]
    while count != len(values):
        count += 1 if count < len(values) else -1
        print(count)
    return values.sum(dim=0) / values.shape[1]
"""
    item, answer = cell("uniform_average", source)
    given = until_lost(replies(answer, asked(item, SEED)[0]))
    capsys.readouterr()
    told = place.where_it_fails(item, answer, given, SEED, short=True)
    assert (told, capsys.readouterr().out) == ("line 6, `1` in `values.shape[1]`", "")


def test_nothing_is_said_of_what_a_process_makes_up():
    item, answer = cell("softmax", CRASHES)
    honest = answer.places
    for lie in (
        {"place": [10**6]},
        {"place": ["0"]},
        {"right": 10**6},
        {"right": -1},
        {"at": 99},
        {"expressions": [[None, "x", ""]]},
        {"expressions": [[10**999, "x", ""]]},
        {"expressions": [[1, None, ""]]},
    ):
        answer.places = lambda *trials, lie=lie: [one | lie for one in honest(*trials)]
        assert said(item, answer) in ("", said(*cell("softmax", CRASHES))), lie
    answer.places = lambda *trials: [
        one | {"expressions": [[1, "\x1b[2J\n" + "x" * 10**6, ""]]} for one in honest(*trials)
    ]
    assert "\x1b" not in said(item, answer) and len(said(item, answer)) < 600
    ended = Mock(side_effect=AnswerLost("it is gone"))
    for answer.places in (ended, lambda *trials: 3, lambda *trials: [[]]):
        assert said(item, answer) == ""


def test_a_students_copy_says_the_same_of_recorded_values(monkeypatch):
    item, answer = cell("nadaraya_watson", WITHOUT_TWO)
    kept, told = record._values(item, SEED), said(item, answer)
    assert not any(isinstance(one, str) for one in leaves(kept))
    monkeypatch.setattr(place, "reference", lambda item: None)
    monkeypatch.setattr(recordings, "values", lambda item, seed: kept)
    place.right_values.cache_clear()
    try:
        assert said(item, answer) == told != ""
    finally:
        place.right_values.cache_clear()
