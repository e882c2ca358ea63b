"""Cutting functions out of the library, and marking what the student writes."""

import ast
import textwrap

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.building.excerpt import solution_lines, text_of, with_solution_marks
from autograder.building.source import SourceError
from autograder.course import StubSolutions


@pytest.fixture
def library(tmp_path):
    """Write a library module; returns its path."""

    def write(text):
        path = tmp_path / "library.py"
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    return write


def text(source):
    return textwrap.dedent(source).strip("\n")


def stub(source):
    """What nbgrader makes of a cell with solution marks."""
    cell = nbformat.v4.new_code_cell(source)
    step = StubSolutions()
    step.code_stub = {"python": "raise NotImplementedError()"}
    step._replace_solution_region(cell, "python")
    return cell.source


@pytest.mark.parametrize(
    ("docstring", "body", "amount"),
    [
        ('"""One line."""', "return x", "1 line"),
        ('"""One line."""\n', "y = x\nreturn y", "2 lines"),  # a blank line after the docstring
        ('"""Several\n\n    lines.\n    """\n# A comment.', "y = x\n\n# Why.\nreturn y", "2 lines"),
        ("", "return x", "1 line"),
        ("", "return (\n    x\n)", "3 lines"),
        ("'''Single.'''", "def inner():\n    return x\nreturn inner()", "3 lines"),
    ],
)
def test_without_comment_the_part_starts_after_the_docstring(library, docstring, body, amount):
    inside = "\n".join(filter(None, [docstring, body]))
    path = library("def f(x):\n" + textwrap.indent(inside, "    "))
    marked = with_solution_marks(path, "f")
    assert f"\n    ### BEGIN SOLUTION f: write about {amount}\n" in marked
    assert marked.endswith("\n    ### END SOLUTION")
    lesson = stub(marked)
    assert lesson.endswith(f'\n    raise NotImplementedError("f: write about {amount}")')
    function = ast.parse(lesson).body[0]
    assert bool(ast.get_docstring(function)) == bool(docstring)
    assert isinstance(function.body[-1], ast.Raise)
    assert "# A comment." not in lesson


def test_a_class_marks_several_methods(library):
    path = library('''
        class Block(nn.Module):
            """A block."""

            size = 3

            def __init__(self, d):
                """Start."""
                super().__init__()
                # exercise: about 1 line
                self.linear = nn.Linear(d, d)

            @property
            def given(self):
                return 1

            def forward(self, x):
                # exercise: 2 lines
                y = self.linear(x)
                return y

            def last(self):
                return 2
    ''')
    marked = with_solution_marks(path, "Block")
    assert stub(marked) == text('''
        class Block(nn.Module):
            """A block."""

            size = 3

            def __init__(self, d):
                """Start."""
                super().__init__()
                raise NotImplementedError("Block.__init__: write about 1 line")

            @property
            def given(self):
                return 1

            def forward(self, x):
                raise NotImplementedError("Block.forward: write 2 lines")

            def last(self):
                return 2
    ''')
    assert solution_lines(path, "Block") == [
        "self.linear = nn.Linear(d, d)",
        "y = self.linear(x)",
        "return y",
    ]


def test_words_with_quotes_make_a_valid_stub(library):
    path = library("def f(x):\n    # exercise: a \"line\" of √d, \\ and 'more'\n    return x\n")
    function = ast.parse(stub(with_solution_marks(path, "f"))).body[0]
    assert function.body[0].exc.args[0].value == "f: write a \"line\" of √d, \\ and 'more'"


def test_marks_without_words_make_a_plain_stub():
    source = "def f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION"
    assert stub(source) == "def f(x):\n    raise NotImplementedError()"


STATEMENTS = st.lists(
    st.sampled_from(
        [
            "y = x + 1",
            "# a comment",
            "",
            "if y > 2:\n    y = 3\nelse:\n    y = 4",
            "for i in range(3):\n    # within\n    y = [\n        i,\n    ]",
            's = """text\n    # in a string\n"""',
            "z = lambda a: a",
        ]
    ),
    max_size=5,
)


@given(STATEMENTS, STATEMENTS, st.booleans())
def test_any_function_is_cut_in_two(tmp_path_factory, above, below, documented):
    rows = ['"""Documented."""'] * documented + above
    rows += ["# exercise: about some lines", *below, "return y"]
    body = textwrap.indent("\n".join(rows), "    ", lambda row: row.strip())
    source = f"def f(x):\n{body}"
    path = tmp_path_factory.mktemp("library") / "library.py"
    path.write_text(f"import torch\n\n\n{source}\n\n\ndef g():\n    pass\n")
    whole = "\n".join(row for row in source.split("\n") if "# exercise:" not in row)
    assert text_of(path, "f") == whole
    marked = with_solution_marks(path, "f").split("\n")
    assert "\n".join(row for row in marked if "SOLUTION" not in row) == whole
    head = source.partition("    # exercise:")[0]
    lesson = stub("\n".join(marked))
    assert lesson == head + '    raise NotImplementedError("f: write about some lines")'
    ast.parse(lesson)


# what is refused


BODY = "put the body of 'f' on lines of its own"
NONE = "there is no function or class 'f' at the top level"
MARKER = "write the marker as '# exercise: about 3 lines'"
INSIDE = "an '# exercise:' comment stands above the lines to be written, inside a function or"
METHODS = "class f:\n    def g(self):\n"
ONE = "# exercise: 1 line\n"
REFUSED = [
    (f"def f(x):\n    {ONE}    y = x\n    {ONE}    return y\n", 4, "f has two '# exercise:' comm"),
    (
        f"{METHODS}        {ONE}        pass\n        {ONE}        x\n",
        5,
        "f.g has two '# exercise:'",
    ),
    (f"import torch\n\n\n{METHODS}        return 1\n", 4, "class 'f' marks nothing to write; put"),
    (f"def f(x):\n    def g():\n        {ONE}        x\n    g()\n", 3, "the comment stands in a"),
    ("def f(x): return x\n", 1, BODY),
    ("def f(\n    x\n): return x\n", 3, BODY),
    ('def f(x):\n    """Text."""; return x\n', 2, BODY),
    ('def f(x):\n    """Only text."""\n', 1, "'f' has no body to be written"),
    ("def g(x):\n    return x\n", 1, NONE),
    ("f = 1\n", 1, NONE),
    ("def f(x):\n    # Exercise: 1 line\n    return x\n", 2, MARKER),
    ("def f(x):\n    #exercise: 1 line\n    return x\n", 2, MARKER),
    ("def f(x):\n    # exercise about 1 line\n    return x\n", 2, MARKER),
    (f"{ONE}def f(x):\n    return x\n", 1, INSIDE),
    (f"def f(x):\n    return x\n    {ONE}", 3, INSIDE),
    (f"class f:\n    {ONE}    def g(self):\n        return 1\n", 2, INSIDE),
    ("def f(x:\n    return x\n", 1, "syntax error: "),
]


@pytest.mark.parametrize(("source", "line", "words"), REFUSED)
def test_what_cannot_be_cut_is_refused(library, source, line, words):
    path = library("")
    path.write_text(source)
    with pytest.raises(SourceError) as raised:
        with_solution_marks(path, "f")
    place, number, said = str(raised.value).split(":", 2)
    assert (place, int(number)) == (str(path), line)
    assert said.strip().startswith(words)
