"""The code in a lesson's folds is the code that ran."""

import re
import textwrap

import pytest

from autograder import ROOT

FOLD = re.compile(r"<summary>The code that ran</summary>\n\n```python\n(.*?)```", re.DOTALL)


def _flat(text):
    """Lines without what they are indented by, so that a part of a function can be found in it."""
    return "\n".join(line.strip() for line in textwrap.dedent(text).splitlines())


@pytest.mark.parametrize("path", sorted((ROOT / "source").glob("[0-9][0-9]_*.py")), ids=str)
def test_folded_code_stands_where_it_ran(path):
    text = re.sub(r"^# ?", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    ran = "\n".join(
        _flat(module.read_text(encoding="utf-8"))
        for folder in ("attention/experiments", "attention/train/core", "benchmarks")
        for module in (ROOT / folder).glob("*.py")
    )
    assert [code for code in FOLD.findall(text) if _flat(code).strip() not in ran] == []
