"""Who depends on whom in a notebook."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.building.gates.affected import affected_names

CELLS = [
    "import math",
    "def first(x):\n    inner = math.pi\n    return inner",
    "def second(x):\n    return first(x)",
    "def third(x):\n    inner = x\n    return inner",
    "a = second(1)\nfor b in [a]:\n    c = b",
    "x = x + c",
    "d = third(2)",
    "def (",
]


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("third", {"d"}),
        ("second", {"a", "b", "c", "x"}),
        ("first", {"second", "a", "b", "c", "x"}),
        ("d", set()),
        ("math", {"first", "second", "a", "b", "c", "x"}),
    ],
)
def test_what_follows_from_a_name(name, others):
    cells = [new_code_cell(source) for source in CELLS]
    # Order does not count: a cell may be run again.
    for order in (cells, cells[::-1]):
        notebook = new_notebook(cells=[new_markdown_cell("third = d"), *order])
        assert affected_names(notebook, [name]) == {name, *others}
