"""Which modules some code imports."""

import pytest

from autograder.imports import imported, modules

FILES = {
    "leaf": "x = 1",
    "inner/deep": "from ..leaf import x\nfrom . import near",
    "inner/near": "",
    "inner/far": "from attention.inner.deep import x",
    "loop": "import attention.loop, attention.leaf",
    "late": "def f():\n    from attention.leaf import x",
    "named": "import importlib\nKNOWN = {'leaf': 1, 'no module': 2}",
    "words": "KNOWN = {'leaf': 1}",
}


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "attention" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from attention import leaf", {"leaf"}),
        ("import attention.leaf as a, math", {"leaf"}),
        ("from attention.leaf import x", {"leaf"}),
        ("from attention.inner.far import x", {"leaf", "inner/far", "inner/deep", "inner/near"}),
        ("import attention.loop", {"loop", "leaf"}),
        ("import attention.late", {"late", "leaf"}),
        ("import attention.named, attention.words", {"named", "words"}),
        ("import torch, autograder, attention", set()),
        ("run([python, '-m', 'attention.late', '-q'])", {"late", "leaf"}),
        ("def later():\n    return ['-m', 'attention.leaf']", {"leaf"}),
        ("print('-m', 'attention.leaf', ['-m'], ['-m', 2])", set()),
    ],
)
def test_imports_are_followed(root, code, expected):
    paths = [root / "attention" / f"{name}.py" for name in expected]
    assert modules(imported(code), root) == sorted(paths)


def test_modules_called_by_name(root):
    folder = root / "attention"
    found = modules(["attention.named", "attention.words"], root, by_name=True)
    assert found == [folder / f"{name}.py" for name in ("leaf", "named", "words")]
    assert modules(["attention.words"], root, by_name=True) == [folder / "words.py"]


def test_what_is_hidden_is_not_followed(root):
    hidden = {root / "attention" / "inner" / "deep.py"}
    found = modules(["attention.inner.far"], root, hidden=hidden)
    assert found == [root / "attention" / "inner" / "far.py"]
