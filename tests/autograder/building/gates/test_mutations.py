"""One-place mutants: what the operators make, where, and under which name."""

import linecache
import sys
import types

import pytest
import torch
from torch import nn

from autograder.building.gates.mutations import mutants

HEAD = '"""A module."""\n\nimport math\n\nimport torch\nfrom torch import nn\n\n\n'


def mutants_of(source, name="answer", above=""):
    """The mutants of a definition in a module of its own."""
    module = types.ModuleType("mutated")
    module.__file__ = "/mutated.py"
    text = HEAD + above + source
    linecache.cache[module.__file__] = (len(text), None, text.splitlines(True), module.__file__)
    sys.modules["mutated"] = module
    exec(compile(text, module.__file__, "exec"), vars(module))
    return list(mutants(getattr(module, name)))


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """The module's text stands in no file: linecache must keep it."""
    monkeypatch.setattr(linecache, "checkcache", lambda *_: None)
    yield
    sys.modules.pop("mutated", None)


@pytest.mark.parametrize(
    ("expression", "words", "made"),
    [
        ("a < b", "with `<=` once where `<` belongs", "a <= b"),
        ("a + b", "with `-` once where `+` belongs", "a - b"),
        ("a - b", "with the two sides of one `-` exchanged", "b - a"),
        ("a * b", "with one factor left out", "a"),
        ("a @ b", "with the two sides of one `@` exchanged", "b @ a"),
        ("-a", "with one minus sign left out", "a"),
        ("a[-1]", "with the first axis or item once where the last belongs", "a[0]"),
        ("a and b", "with `and` and `or` exchanged in one place", "a or b"),
        ("a[1:]", "with one bound of a slice left out", "a[:]"),
        ("a[2]", "with one whole number off by one", "a[3]"),
        ("a * 0.5", "with one constant twice as large", "a * 1.0"),
        ("a.sum(dim=-1)", "with another axis in one place", "a.sum(dim=-2)"),
        ("a.sum(dim=-1)", "without `dim` in one call of `sum`", "a.sum()"),
        ("a.sum(dim=-1)", "with `mean` once where `sum` belongs", "a.mean(dim=-1)"),
        ("math.sqrt(a)", "with half of a number where its square root belongs", "a * 0.5"),
        ("torch.softmax(a, b)", "with one call of `softmax` left out", "a"),
        ("torch.sub(a, b)", "with two arguments of one call of `sub` exchanged", "torch.sub(b, a)"),
        ("a if b else 1", "in which one condition always gives the same answer", "1"),
        ("(a, b)", "with the two items of a pair exchanged", "(b, a)"),
        ("a + 1", "with `b` once where `a` belongs", "b + 1"),
        ("a + b", "whose result is cut off from the gradient", "(a + b).detach()"),
    ],
)
def test_an_operator_makes_what_it_says(expression, words, made):
    found = mutants_of(f"def answer(a, b):\n    return {expression}\n")
    assert (words, f"return {made}") in [(one.words, one.text) for one in found]


def test_a_mutant_does_what_its_text_says():
    found = mutants_of("def answer(a, b):\n    return a + b\n")
    (minus,) = (one for one in found if one.words == "with `-` once where `+` belongs")
    assert minus.target(5, 3) == 2
    assert minus.line == len(HEAD.splitlines()) + 2


WRITTEN = '''def answer(a, b):
    """Two lines are given.

    >>> answer(1, 2)
    """
    a = a + 1
    if b > 2:
        b = b - 1
    # exercise: about 2 lines
    c = a * b
    return c
'''


def test_only_the_written_part_is_changed():
    found = mutants_of(WRITTEN)
    first = len(HEAD.splitlines()) + WRITTEN.splitlines().index("    # exercise: about 2 lines") + 1
    assert found
    assert all(one.line >= first for one in found)
    assert not any("+ 1" in one.text or "- 1" in one.text for one in found)


def test_of_a_class_only_marked_methods_are_changed():
    found = mutants_of(
        "class answer(nn.Module):\n"
        "    def given(self, x):\n        return x + 1\n\n"
        "    def forward(self, x):\n        # exercise: about 1 line\n        return x * 3\n"
    )
    assert found
    assert all(issubclass(one.target, nn.Module) for one in found)
    assert all(one.target().given(torch.ones(1)).item() == 2 for one in found)
    assert {one.target().forward(1.0) for one in found if "factor" in one.words} == {1.0, 3}


def test_keys_do_not_depend_on_lines_and_no_mutant_comes_twice():
    before, after = mutants_of(WRITTEN), mutants_of(WRITTEN, above="SPACE = 1\n\n\n")
    assert [one.key for one in before] == [one.key for one in after]
    assert [one.line + 3 for one in before] == [one.line for one in after]
    pairs = [(one.words, one.text) for one in before]
    assert len(set(pairs)) == len(pairs)
    assert all(one.key == f"answer: {one.words}: {one.text}" for one in before)


def test_the_module_itself_is_left_alone():
    mutants_of(WRITTEN)
    assert sys.modules["mutated"].answer(1, 2) == 4
