"""What of the library a student's process may not see while a lesson is graded."""

import ast
from pathlib import Path

import pytest

import attention
from autograder import CourseError
from autograder.building import lesson
from autograder.imports import imported
from autograder.sandbox import visible_files
from autograder.sandbox.sandbox import Sandbox
from tests.test_rooms import MODULES, ROOT

LIBRARY = Path(attention.__file__).parent
SLUGS = [path.stem for path in lesson.find()]
ANSWERS = 'ANSWERS = "decoding"\n'


def hidden(folder, slug, **modules):
    """Names of the modules hidden in a library that has these in its folder of what is provided."""
    library = folder / "attention"
    (library / "provided").mkdir(parents=True)
    for path in ("__init__", "transformer", "decoding", "provided/__init__"):
        (library / f"{path}.py").touch()
    for name, text in modules.items():
        (library / "provided" / f"{name}.py").write_text(text)
    return {path.stem for path in visible_files.hidden(library, slug)} - {"transformer", "decoding"}


@pytest.mark.parametrize(
    ("slug", "expected"),
    [
        ("00_getting_started", {"cache"}),
        ("13_decoding", {"cache"}),
        ("14_translation", set()),
    ],
)
def test_who_answers_a_lesson_is_hidden_up_to_this_lesson(tmp_path, slug, expected):
    assert hidden(tmp_path, slug, cache=ANSWERS, plots="import math\n") == expected


@pytest.mark.parametrize(
    "text",
    [
        "import attention.decoding\n",
        "import attention.decoding as d\n",
        "from attention.decoding import search\n",
        "from attention import decoding\n",
        "from ..decoding import search\n",
        "from .. import decoding\n",
        "try:\n    from attention.decoding import search\nexcept ImportError:\n    pass\n",
        "class A:\n    from attention.decoding import search\n",
        "from attention.provided.cache import Cache\n",
        "from attention.provided import cache\n",
        "from . import cache\n",
    ],
)
def test_who_imports_what_is_hidden_is_hidden_too(tmp_path, text):
    modules = {"cache": ANSWERS, "one": text, "two": "from attention.provided import one\n"}
    assert hidden(tmp_path, "13_decoding", **modules) == {"cache", "one", "two"}


def test_what_is_imported_by_a_call_or_from_an_earlier_lesson_hides_nobody(tmp_path):
    later = "def f():\n    from attention.decoding import search\n"
    earlier = "from attention.transformer import Transformer\n"
    assert hidden(tmp_path, "13_decoding", later=later, earlier=earlier) == set()


def test_an_unknown_lesson_is_refused(tmp_path):
    with pytest.raises(CourseError, match=r"cache.py: ANSWERS = 'decode' names no lesson"):
        hidden(tmp_path, "13_decoding", cache='ANSWERS = "decode"\n')


def test_what_is_hidden_is_not_copied(tmp_path):
    visible_files.prepare(tmp_path, "13_decoding")
    copied = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.py")}
    assert "attention/provided/models/key_value_cache.py" not in copied
    assert "attention/train/__main__.py" not in copied  # it imports the lesson
    assert {"attention/transformer.py", "attention/provided/models/attention_weights.py"} <= copied
    assert not any("_PastAttention" in (tmp_path / path).read_text() for path in copied)


@pytest.mark.parametrize("slug", SLUGS)
def test_of_the_lessons_exactly_the_earlier_ones_are_there(slug):
    missing = {path.stem for path in visible_files.hidden(LIBRARY, slug) if path.parent == LIBRARY}
    assert missing == {other[3:] for other in SLUGS if other >= slug}


@pytest.mark.parametrize("slug", SLUGS)
def test_no_cell_that_grading_runs_imports_what_is_hidden(slug):
    (path,) = lesson.find([slug])
    cells = [cell.source for cell in lesson.read(path).cells if cell.kind == "code"]
    nodes = [node for source in cells for node in ast.walk(ast.parse(source))]
    names = {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    files = {LIBRARY.parent / (name.replace(".", "/") + ".py") for name in names}
    assert files & visible_files.hidden(LIBRARY, slug) == set()


def test_what_a_notebook_imports_is_named():
    assert visible_files.imported_first("99_no_lesson") == []
    assert "attention.provided.stand_ins" in visible_files.imported_first("20_modern_decoder")
    named = visible_files.imported_first("11_training")
    assert {"attention.transformer", "attention.provided.predictions", "torch._dynamo"} <= set(
        named
    )


@pytest.mark.long
def test_what_a_notebook_imports_is_there_before_the_first_submission():
    named = visible_files.imported_first("11_training")
    code = f"import sys; print({named} == [name for name in {named} if name in sys.modules])"
    with Sandbox("11_training", "off") as box:
        outputs = box.start().run(code)
    assert "True" in str(outputs)


@pytest.mark.parametrize("slug", SLUGS)
def test_nothing_that_is_hidden_is_imported_first(slug):
    hidden = {path.relative_to(LIBRARY.parent) for path in visible_files.hidden(LIBRARY, slug)}
    named = {
        Path(*name.split(".")).with_suffix(".py") for name in visible_files.imported_first(slug)
    }
    assert named or "_own_" in slug  # a small one of an instructor's imports nothing else
    assert named & hidden == set()


def test_what_the_library_uses_of_the_grader_is_there(tmp_path):
    visible_files.prepare(tmp_path, "99_the_last")
    for path in (tmp_path / "attention").rglob("*.py"):
        if path.parent.name not in ("pages", "commands"):  # commands run these, and no notebook
            used = {*imported(path.read_text(encoding="utf-8"))} & MODULES.keys()
            files = [MODULES[name].relative_to(ROOT) for name in used]
            assert [one for one in files if not (tmp_path / one).is_file()] == [], path
