"""What no module, notebook or command uses goes, be it tested or not."""

import functools
import re

from vulture import Vulture

from autograder import ROOT

PRODUCT = ("attention", "autograder", "benchmarks", "source")
REGISTERED = ["@alternative", "@careless", "@check", "@mistake", "@stands_in"]
# Called by others, by these names: Python, IPython, Sphinx, nbconvert, nbgrader with its templates.
CALLED = {
    *("__getattr__", "_render_traceback_"),
    *("setup", "EscapeNames", "FeedbackExporter", "Grades"),
    *("markdown_to_html", "code_to_html", "Assemble", "RunInSandbox", "LateRule"),
}


@functools.cache
def unused():
    """The names of functions, classes and methods that nothing of the product uses, by place."""
    seen = Vulture(ignore_decorators=[f"{one}*" for one in REGISTERED])
    seen.scavenge([str(ROOT / folder) for folder in PRODUCT])
    texts = "".join(path.read_text("utf-8") for path in (ROOT / "source").glob("*.py"))
    named = {*re.findall(r"\w+", texts)}  # learners are told to call some
    kinds = ("function", "class", "method", "property")
    found = [one for one in seen.get_unused_code() if one.typ in kinds and one.name not in named]
    return {f"{one.filename.relative_to(ROOT)}:{one.first_lineno}": one.name for one in found}


def test_nothing_is_defined_that_nothing_uses():
    assert {place: name for place, name in unused().items() if name not in CALLED} == {}


def test_the_exceptions_are_still_needed():
    assert CALLED - {*unused().values()} == set()
