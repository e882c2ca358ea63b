"""A stored answer is called as the exercise is: one that cannot be is like nobody's answer."""

import inspect

import pytest

from autograder.checking.toolbox import registry
from autograder.checking.toolbox.registry import reference

registry.import_all()
FUNCTIONS = {
    name: target
    for name, item in registry._checks.items()
    if inspect.isfunction(target := reference(item))
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_stored_answer_takes_its_arguments_by_their_places(name):
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    needed = [
        one
        for one in parameters
        if one.default is one.empty and one.kind == one.POSITIONAL_OR_KEYWORD
    ]
    item = registry.find(name)
    for answer in registry.stored_answers(item):
        if inspect.isfunction(answer.target) and not name.startswith("break_"):
            inspect.signature(answer.target).bind(*needed)
