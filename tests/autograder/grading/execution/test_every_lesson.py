"""Every lesson through the real grading, in the sandbox: what is right there, earns everything.

The gates of ``autograder verify`` run answers in this process. Here the notebook's own cells run,
without the library's modules of this lesson and later ones.
"""

import pytest

from autograder import ROOT
from autograder.building import lesson
from autograder.checking.toolbox import registry
from autograder.grading.classroom import sample_class
from autograder.grading.notebook import records
from autograder.grading.notebook.submission import parse
from autograder.sandbox.sandbox import Sandbox
from benchmarks.written_out import is_written_out
from tests.autograder.one import grade_submission

ALWAYS = ("01",)  # for the others it takes minutes more
CI = ("20",)
SLUGS = [
    pytest.param(
        path.stem,
        marks=[pytest.mark.long] * (path.stem[:2] not in ALWAYS)
        + [pytest.mark.every] * (path.stem[:2] not in ALWAYS + CI),
    )
    for path in lesson.find()
]


def variants(slug):
    """Answers for two submissions: of every exercise the last alternative; the first mistake."""
    items = registry.of_lesson(slug[3:])
    other, wrong = {}, {}
    for name, item in items.items():
        if found := [*filter(is_written_out, registry.alternatives(item))]:
            other[name] = found[-1]
        if found := [*filter(is_written_out, registry.mistakes(item))]:
            wrong[name] = found[0]  # of some exercises all are made by functions
    return other, wrong


@pytest.mark.parametrize("slug", SLUGS)
def test_right_answers_earn_all_and_mistakes_their_stages(slug):
    other, wrong = variants(slug)
    master = records.read_notebook(ROOT / "solutions" / slug / f"{slug}.ipynb")
    with Sandbox(slug, "auto") as box:
        results = [
            grade_submission(master, parse(sample_class.handed_in(slug, answers)), box)[1]
            for answers in (None, other, wrong)
        ]
    solved, differently, mistaken = (
        {one.name: one for one in result.exercises} for result in results
    )
    for earned in (solved, differently):
        lost = {name: one.reason for name, one in earned.items() if one.score < one.max}
        assert lost == {}
    items = registry.of_lesson(slug[3:])
    assert len(wrong) >= len(items) - 3 and len(other) >= len(items) - 3
    for name, one in ((name, mistaken[name]) for name in wrong):
        stages, known = dict(items[name].stages), wrong[name]
        most = sum(stages[stage] for stage in known.earns or stages)
        assert one.score <= most and one.score < one.max, known  # care may cost a part of it
        assert wrong[name].hint.split()[-1] in one.reason, one.reason
