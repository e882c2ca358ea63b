"""A class's notebook: other points, optional exercises, exercises that are not there."""

import contextlib
import copy
import re

import nbformat
import pytest

from autograder import ROOT, CourseError, cell_metadata, lessons
from autograder.checking.toolbox import registry
from autograder.term import class_notebooks, course_file
from autograder.term.adapt import adapt, exercises
from autograder.term.course_file import Choices, LessonChoice

SLUG = "07_multi_head_attention"
OTHER = "05_scaled_dot_product_attention"
SLUGS = course_file.there(ROOT)


def read(slug, kind="solutions"):
    return nbformat.read(lessons.notebook(ROOT, kind, slug), 4)


def adapted(slug, kind="solutions", **changes):
    return class_notebooks.adapted(read(slug, kind), LessonChoice(slug, **changes))


def text(notebook):
    return "\n".join(cell["source"] for cell in notebook["cells"])


@pytest.mark.parametrize("slug", SLUGS)
def test_each_exercise_is_found_with_its_minutes_and_stages(slug):
    found = exercises(read(slug)["cells"])
    checks = registry.of_lesson(lessons.name_of(slug))
    assert found.keys() == checks.keys()
    for name, one in found.items():
        assert one.stages == tuple(float(worth) for _, worth in checks[name].stages)
        assert one.minutes > 0 and one.points > 0
    given_out = exercises(read(slug, "lessons")["cells"])
    assert [*given_out] == [*found]


@pytest.mark.parametrize("kind", ["solutions", "lessons"])
def test_other_points_stand_in_the_check_and_in_every_text(kind):
    made = adapted(SLUG, kind, points={"head_updates": 4, "MultiHeadAttention": 7.5})
    one = exercises(made["cells"])
    assert (one["head_updates"].points, one["MultiHeadAttention"].points) == (4, 7.5)
    assert one["heads_by_hand"].points == 2
    assert "●●○ medium · 8 minutes · 4 points" in text(made)
    assert "shares of 5; in this class all of it earns 7.5 points" in text(made)
    assert f"**Points** {12 + 2 + 2.5:g} " in made["cells"][0]["source"]
    before = read(SLUG, kind)
    assert made["metadata"] == before["metadata"]
    names = [[cell_metadata.grade_id(cell) for cell in one["cells"]] for one in (made, before)]
    assert names[0] == names[1]


def test_an_optional_exercise_stays_and_earns_nothing():
    made = adapted(SLUG, optional=("collaborative_heads",))
    assert exercises(made["cells"])["collaborative_heads"].points == 0
    assert "optional: it earns no points in this class" in text(made)
    assert "**Points** 9 " in made["cells"][0]["source"]
    assert len(made["cells"]) == len(read(SLUG)["cells"])


def test_an_exercise_that_is_left_out_is_gone_with_its_text_and_its_minutes():
    left_out = "break_scaled_dot_product_attention"
    before, made = read(OTHER), adapted(OTHER, without=(left_out,))
    gone = exercises(before["cells"]).keys() - exercises(made["cells"]).keys()
    assert gone == {left_out} and "Exercise 5.4" not in text(made)
    assert left_out not in text(made) and "Exercise 5.5" in text(made)
    (minutes,) = re.findall(r"\*\*Time\*\* (\d+)", before["cells"][0]["source"])
    left = int(minutes) - exercises(before["cells"])[left_out].minutes
    assert f"**Time** {left} minutes" in made["cells"][0]["source"]
    assert re.search(r"\*\*Points\*\* 13\b", made["cells"][0]["source"])


def test_what_stands_above_the_heading_of_an_exercise_in_its_cell_stays():
    before = read(OTHER)
    place = exercises(before["cells"])["dot_product_statistics"].section[0]
    above = before["cells"][place]["source"].partition("### Exercise")[0].strip()
    made = copy.deepcopy(before)
    adapt(made, LessonChoice(OTHER, without=("dot_product_statistics",)))
    assert above and made["cells"][place]["source"] == above
    assert "dot_product_statistics" not in exercises(made["cells"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"points": {"head_update": 2}}, "no exercise of it; did you mean head_updates?"),
        ({"optional": ("x",)}, "x is no exercise of it; there are: Multi"),
        ({"points": {"head_updates": 2}, "optional": ("head_updates",)}, "stands in two of"),
        ({"points": {"MultiHeadAttention": 3}}, "has 4 stages, each earned by itself"),
        ({"without": ("head_updates",)}, "called further down"),
        ({"optional": tuple(exercises(read(SLUG)["cells"]))}, "leave the whole lesson out"),
    ],
)
def test_what_does_not_fit_the_lesson_is_refused(tmp_path, changes, said):
    choices = Choices(tmp_path, {SLUG: LessonChoice(SLUG, **changes)})
    with pytest.raises(CourseError) as refused:
        class_notebooks.refuse(choices, {SLUG: read(SLUG)}, ROOT)
    assert said in str(refused.value) and SLUG in str(refused.value)


@pytest.mark.parametrize("assumed", ["", 'assumed = ["00", "04"]'])
def test_a_lesson_whose_ground_is_missing_is_refused_unless_it_is_assumed(tmp_path, assumed):
    choices = course_file.parse(tmp_path / "course.toml", f"{assumed}\n[lessons.05]", SLUGS)
    notebooks = {slug: read(slug) for slug in choices.lessons}
    expected = contextlib.nullcontext()
    if not assumed:
        expected = pytest.raises(CourseError, match=re.escape('assumed = ["00", "04"]'))
    with expected:
        class_notebooks.refuse(choices, notebooks, ROOT)


def test_every_lesson_names_only_earlier_ones_that_it_needs():
    for slug in SLUGS:
        needs = class_notebooks.needs(read(slug), SLUGS)
        assert all(one < slug for one in needs) and (needs or slug[:2] == "00")
