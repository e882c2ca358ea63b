"""An answer in this process: five requests, and whatever a learner's code does in them."""

import math
import random
import threading

import pytest
import torch
from torch import nn

from autograder.inside.answer import AnswerRaised, LocalAnswer
from autograder.inside.messages.values import Foreign, same
from autograder.inside.stand_ins import METHOD


def call(function, *args, **kwargs):
    return LocalAnswer(function).call(list(args), kwargs)


def as_cell(source, filename="/tmp/ipykernel_4711/1234.py"):
    """What a notebook's cell defines last."""
    namespace = {"torch": torch, "__name__": "__main__"}
    exec(compile(source, filename, "exec"), namespace)
    return list(namespace.values())[-1]


# calling


def test_arguments_are_copies_with_the_same_layout():
    values = torch.ones(2, 3, 2)[..., 0]

    def keep(given, *, option):
        kept.extend([given, option])

    kept = []
    option = [torch.ones(2)]
    call(keep, values, option=option)
    assert kept[0].stride() == values.stride()
    assert not kept[0].is_contiguous()
    kept[0].zero_()
    kept[1][0].zero_()
    assert values.sum() == 6
    assert option[0].sum() == 2


def test_results_are_plain():
    assert call(lambda: 1j).value == Foreign("a complex")
    assert call(lambda: [nn.Parameter(torch.ones(1))]).value == [torch.ones(1)]


@pytest.mark.parametrize(
    ("modify", "names"),
    [
        (lambda a, b, key: a.add_(1), ["argument 1"]),
        (lambda a, b, key: b.mul_(0), ["argument 2"]),
        (lambda a, b, key: key.zero_(), ["key"]),
        (lambda a, b, key: (b.mul_(2), key.neg_()), ["argument 2", "key"]),
        (lambda a, b, key: a.resize_(1), ["argument 1"]),
        (lambda a, b, key: a + b + key, []),
    ],
)
def test_modified_tensors_are_named(modify, names):
    a, b, key = torch.tensor([3.0, 2.0]), torch.ones(2), torch.tensor([1.0])
    assert call(modify, a, b, key=key).modified == names
    assert a.tolist() == [3.0, 2.0]


def test_modified_containers_are_named():
    def modify(numbers, nothing, table):
        numbers.append(4)
        nothing += (1,)
        table["a"].fill_(1)

    reply = call(modify, [1, 2], (3,), table={"a": torch.zeros(2)})
    assert reply.modified == ["argument 1", "table"]


def test_nan_and_infinity_in_the_inputs_are_no_modification():
    assert call(lambda x: x.sum(), torch.tensor([math.nan, -math.inf])).modified == []


def test_gradients_are_recorded_even_if_the_cell_switched_them_off():
    with torch.no_grad():
        _, (gradient,) = LocalAnswer(lambda x: 2 * x).gradients([torch.ones(1)], {}, None).value
    assert gradient.item() == 2


@pytest.mark.parametrize(
    "name", ["torch.is_grad_enabled()", "torch.get_default_dtype()", "torch.is_anomaly_enabled()"]
)
def test_switches_are_put_back_and_named_also_when_an_object_is_built(name):
    class Switches:
        def __init__(self):
            torch.set_grad_enabled("grad" not in name)
            torch.set_default_dtype(torch.float64 if "dtype" in name else torch.float32)
            torch.autograd.set_detect_anomaly("anomaly" in name)

        def __call__(self):
            return 1

    made = LocalAnswer(Switches).build([], {})
    assert torch.is_grad_enabled() and not torch.is_anomaly_enabled()
    assert torch.get_default_dtype() == torch.float32
    assert [made.call([], {}).modified for _ in range(2)] == [[name], []]


# errors


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Base(BaseException):
    """Not an Exception."""


class BadRow(ValueError):
    """A ValueError by another name, and so one."""


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ValueError("  too small  "), "ValueError", "too small"),
        (SystemExit(0), "SystemExit", "0"),
        (Silent(), "Silent", ""),
        (Base("x"), "Base", "x"),
        (GeneratorExit(), "GeneratorExit", ""),
        (StopIteration(), "StopIteration", ""),
        (ValueError("half a \ud83d"), "ValueError", "half a ?"),
        (RuntimeError("a" * 9999), "RuntimeError", "a" * 500),
        (BadRow("row 3"), "ValueError", "row 3"),
    ],
)
def test_whatever_is_raised_is_reported(error, kind, message):
    def answer():
        raise error

    with pytest.raises(AnswerRaised) as raised:
        call(answer)
    assert (raised.value.kind, raised.value.message) == (kind, message)
    assert raised.value.__cause__ is None


def endless(n=0):
    return endless(n + 1)


@pytest.mark.parametrize(
    ("answer", "said"),
    [(endless, "RecursionError"), (3, "TypeError: 'int' object is not callable")],
)
def test_what_cannot_be_called_to_its_end_is_reported(answer, said):
    with pytest.raises(AnswerRaised, match=said):
        call(answer)


def test_an_interrupt_of_the_user_passes():
    def answer():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call(answer)


@pytest.mark.parametrize("name", ["/tmp/ipykernel_4711/1234.py", "<ipython-input-3-a>", "<cell>"])
def test_the_failing_line_of_the_notebook_is_named(name):
    cell = as_cell(
        "def inner(x):\n    y = x + 1\n    return torch.ones(2) @ y\n\n"
        "def answer(x):\n    return inner(x)\n",
        name,
    )
    with pytest.raises(AnswerRaised) as raised:
        call(cell, torch.ones(3))
    assert raised.value.where == "line 3 of its cell, in inner"


def test_the_failing_line_is_quoted_where_its_text_is_known(tmp_path):
    path = tmp_path / "ipykernel_4711.py"
    source = "def answer():\n    return unknown_name\n"
    path.write_text(source)
    with pytest.raises(AnswerRaised) as raised:
        call(as_cell(source, str(path)))
    assert raised.value.where == "line 2 of its cell, in answer: return unknown_name"


def test_lines_of_other_files_are_not_the_students():
    with pytest.raises(AnswerRaised) as raised:
        call(torch.linalg.inv, "no tensor")
    assert raised.value.where == ""


# gradients


def test_gradients_of_functions():
    x, n, y = torch.tensor([1.0, 2.0]), torch.tensor([3, 4]), torch.tensor([5.0, 6.0])
    answer = LocalAnswer(lambda x, n, y: x * n + 0 * y.detach())
    named, inputs = answer.gradients([x, n, y], {}, torch.tensor([1.0, 10.0])).value
    assert named == {}
    assert inputs[0].tolist() == [3.0, 40.0]
    assert inputs[1] is None
    assert not x.requires_grad


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        (lambda x: x.detach() * 2, ({}, [None])),
        (lambda x: torch.tensor(x.tolist()), ({}, [None])),
        (lambda x: x.long(), ({}, [None])),
        (lambda x: (3 * x, 5 * x), ({}, [torch.tensor([3.0, 3.0])])),  # of a tuple the first
        (lambda x: (3 * x.detach(), x), ({}, [None])),
        (lambda x: (), Foreign("a tuple")),
        (lambda x: ({}, [x]), Foreign("a tuple")),  # and no pair of gradients
        (lambda x: x.tolist(), Foreign("a list")),
        (lambda x: x.numpy(force=True), Foreign("a numpy.ndarray of shape (2,)")),
    ],
)
def test_where_no_gradient_flows_is_none_and_what_is_no_tensor_is_described(answer, value):
    assert same(LocalAnswer(answer).gradients([torch.ones(2)], {}, None).value, value)


def test_a_result_of_the_wrong_shape_is_an_error_of_the_answer():
    with pytest.raises(AnswerRaised, match="RuntimeError"):
        LocalAnswer(lambda x: x[:2]).gradients([torch.ones(3)], {}, torch.ones(3))


# modules


class Line(nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = nn.Parameter(torch.tensor(float(slope)))
        self.shift = nn.Parameter(torch.zeros(()), requires_grad=False)

    def forward(self, x):
        return self.slope * x + self.shift + (0.0 if self.training else 100.0)


def line():
    return LocalAnswer(Line).build([3.0], {})


def test_a_method_of_an_object_makes_a_new_one():
    class Doubling(Line):
        def doubled(self):
            return Line(2 * self.slope.item())

    made = LocalAnswer(Doubling).build([3.0], {}).build([], {METHOD: "doubled"})
    assert made.parameters()["slope"].item() == 6
    with pytest.raises(AnswerRaised, match="no attribute 'doubled'"):
        line().build([], {METHOD: "doubled"})


def test_a_module_is_built_loaded_called_and_differentiated():
    module = line()
    assert {name: value.item() for name, value in module.parameters().items()} == {
        "slope": 3.0,
        "shift": 0.0,
    }
    values = {"slope": torch.tensor(2.0, dtype=torch.float64), "shift": torch.tensor(1.0)}
    module.load(values)
    x = torch.tensor([5.0], dtype=torch.float64)
    assert module.call([x], {}).value.item() == 11
    named, (gradient,) = module.gradients([x], {}, None).value
    assert (named["slope"].item(), named["shift"], gradient.item()) == (5, None, 2)
    module.train(False)
    assert module.call([x], {}).value.item() == 111
    module.train(True)
    assert module.call([x], {}).value.item() == 11
    assert values["slope"].item() == 2


MANY = [f"layer_{n}_attention_projection_{name}" for n in range(4) for name in "koqv"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (MANY[:-1], f"without {MANY[-1]}, expected also {MANY[-1]}"),
        (MANY[4:], "without {0}, expected also {0}".format(f"{MANY[0]}, {MANY[1]} and 2 more")),
        ([*MANY, "own"], "also own, expected without own"),
    ],
)
def test_of_many_names_only_those_that_differ_are_listed(names, said):
    """Whole, both lists would be longer than what a sandbox hands on of a message."""
    module, values = nn.Module(), dict.fromkeys(MANY, torch.ones(1))
    for name in names:
        module.register_parameter(name, nn.Parameter(torch.zeros(1)))
    with pytest.raises(AnswerRaised) as raised:
        LocalAnswer(module).load(values)
    assert (raised.value.kind, raised.value.message) == ("ParameterNames", said)


def test_loaded_weights_are_copies():
    module, slope = line(), torch.tensor(2.0)
    module.load({"slope": slope, "shift": torch.tensor(0.0)})
    slope.fill_(9)
    assert module.call([torch.ones(1)], {}).value.item() == 2


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ({"slope": 1.0}, "ParameterNames", "shift, slope, expected slope"),
        ({"a": 1.0, "slope": 1.0}, "ParameterNames", "shift, slope, expected a, slope"),
        (
            {"slope": [1.0], "shift": 1.0},
            "ParameterShape",
            "slope has shape (), expected (1,)",
        ),
    ],
)
def test_other_names_and_shapes_are_refused(values, kind, message):
    tensors = {name: torch.tensor(value) for name, value in values.items()}
    with pytest.raises(AnswerRaised) as raised:
        line().load(tensors)
    assert (raised.value.kind, raised.value.message) == (kind, message)


@pytest.mark.parametrize("thing", [lambda: None, lambda: lambda x: x, list])
def test_a_class_that_makes_no_module_has_no_parameters(thing):
    module = LocalAnswer(thing).build([], {})
    assert module.parameters() == {}
    with pytest.raises(AnswerRaised, match="no parameters, expected slope"):
        module.load({"slope": torch.ones(())})
    with pytest.raises(AnswerRaised, match="AttributeError"):
        module.train(True)


def test_a_constructor_that_fails_is_reported():
    class Forgetful(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(torch.ones(1))

    with pytest.raises(AnswerRaised, match="cannot assign parameters before Module.__init__"):
        LocalAnswer(Forgetful).build([], {})


# Python's own generator, which all threads of a process share


draw = random.random  # as after ``from random import random``


def waits_for_a_draw(x):
    """Draws nothing, but another thread does while it is called."""
    other = threading.Thread(target=random.random)
    other.start()
    other.join()
    return 2 * x


@pytest.fixture
def another_thread():
    """A process that has one, as a kernel and a worker of a cluster have."""
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    yield
    ended.set()
    thread.join()


def changed(function):
    return LocalAnswer(function).call([torch.ones(2)], {}, seed=3).modified


def test_what_another_thread_draws_is_not_the_answers(another_thread):
    assert changed(waits_for_a_draw) == []


@pytest.mark.parametrize(
    "draws",
    [
        lambda: random.random(),
        lambda: random.shuffle([1, 2, 3]),
        lambda: random.gauss(0, 1),
        lambda: random.choice("ab"),
        lambda: random.seed(3),
        lambda: random.setstate(random.Random(3).getstate()),
    ],
)
def test_what_an_answer_draws_itself_is_noticed_and_taken_back(draws, another_thread):
    before = random.getstate()
    assert changed(lambda x: (draws(), 2 * x)[1]) == ["Python's global random generator"]
    assert random.getstate() == before


def test_without_another_thread_every_draw_is_noticed(monkeypatch):
    monkeypatch.setattr(threading, "active_count", lambda: 1)  # the tests' own runner has some
    assert changed(lambda x: (draw(), 2 * x)[1]) == ["Python's global random generator"]


def test_the_generator_is_left_as_it_was():
    held = random.random, random.seed, dict(vars(random._inst))
    changed(lambda x: 2 * x)
    assert (random.random, random.seed, dict(vars(random._inst))) == held
