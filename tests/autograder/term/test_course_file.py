"""class/course.toml: what it says is read, and what it cannot mean is refused in one sentence."""

import itertools
from datetime import datetime

import pytest

from autograder import ROOT, CourseError, settings
from autograder.settings import USUAL
from autograder.term import course_file, plan
from autograder.term.course_file import Late

SLUGS = course_file.there(ROOT)
WHOLE = """
timezone = "Europe/Berlin"
assumed = ["00"]
[late]
percent_a_day = 10
grace_hours = 1
[sections]
monday = ["ada", "alan"]
[groups]
one = ["ada", "alan"]
[lessons.01]
release = "2026-10-05 08:00"
due = 2026-10-11T23:59:00
points = { soft_lookup = 3.5 }
optional = ["attention_weights"]
[lessons.kernel_regression_not]
"""


def parsed(tmp_path, text):
    return course_file.parse(tmp_path / "course.toml", text, SLUGS)


def test_a_class_without_a_file_has_all_of_it(tmp_path):
    (tmp_path / "solutions").symlink_to(ROOT / "solutions")
    choices = course_file.read(tmp_path)
    assert list(choices.lessons) == SLUGS and not choices.adapts and not choices.chosen
    assert settings.care(tmp_path) == USUAL and choices.late is None


def test_what_stands_there_is_read(tmp_path):
    choices = parsed(tmp_path, WHOLE.replace("[lessons.kernel_regression_not]", ""))
    (one,) = choices.lessons.values()
    assert one.slug == "01_kernel_regression" and choices.adapts
    assert one.due == datetime(2026, 10, 11, 21, 59) and one.release == datetime(2026, 10, 5, 6)
    assert (dict(one.points), one.optional) == ({"soft_lookup": 3.5}, ("attention_weights",))
    assert choices.assumed == ("00_getting_started",)
    assert choices.shown(one.due) == "Sun 11 Oct 2026, 23:59"
    assert choices.groups == {"one": ("ada", "alan")}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WHOLE, "no lesson is called 'kernel_regression_not'"),
        ("lesson = 1", "there is no setting lesson; did you mean lessons?"),
        ('path = "x"', "there is no setting path; "),
        ("chosen = true", "there is no setting chosen; "),
        ('[lessons.01]\nslug = "x"', "there is no setting lessons.01_kernel_regression.slug; "),
        (
            "[lessons.01]\npoint = {}",
            "regression.point; did you mean points?",
        ),
        ("[lessons]\n01 = 3", "lessons.01_kernel_regression: Input should be a dictionary"),
        ("[lessons.01]\n[lessons.kernel_regression]", "stands there twice"),
        (
            '[lessons.01]\ndue = "2026-10-05"',
            "is a day without a time: write it as 2026-10-05T23:59",
        ),
        ("[lessons.01]\ndue = 2026-10-05", "is a day without a time: write it as 2026-10-05T23:59"),
        ('[lessons.01]\ndue = "11.10.2026 23:59"', "without the zone, for that of the class"),
        (
            "[lessons.01]\nrelease = 2026-10-05T00:00:00Z\ndue = 2026-10-04T00:00:00Z",
            ") before it is released",
        ),
        ("[lessons.01]\ndue = 2026-10-04T00:00:00", "kernel_regression name no zone"),
        ("[lessons.01]\npoints = { a = 0 }", "points.a: Input should be greater than 0, not 0"),
        ('[lessons.01]\nalone = "maybe"', "alone: Input should be a valid boolean"),
        ("[lessons.01]\nalone = 1", "alone: Input should be a valid boolean"),
        ('[lessons.01]\npoints = { a = "2" }', "points.a: Input should be a valid number"),
        ("[late]\npercent_a_day = true", "percent_a_day: Input should be a valid number"),
        (
            "[late]\npercent_a_day = 1\nweeks = 1",
            "late.weeks; there are: percent_a_day,",
        ),
        ('[lessons.01]\noptional = "a"', "optional: Input should be a valid tuple"),
        ('timezone = "Europe/Berln"', "no timezone 'Europe/Berln'; did you mean 'Europe/Berlin'?"),
        ("[late]\ngrace_hours = 1", "late.percent_a_day: Field required"),
        (
            "[late]\npercent_a_day = 101",
            "percent_a_day: Input should be less than or equal",
        ),
        ('[groups]\na = ["ada"]\nb = ["ada"]', "groups.b names ada, who is in a already"),
        ('[sections]\na = ["ada", "ada"]', "sections.a names ada, who is in a already"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path, text, said):
    with pytest.raises(CourseError) as refused:
        parsed(tmp_path, text)
    assert said in str(refused.value) and "\n" not in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path))


@pytest.mark.parametrize("name", [None, *plan.PLANS])
def test_each_ready_plan_is_read_with_its_comments(tmp_path, name):
    start = datetime(2026, 10, 5) if name else None
    text = plan.text(name, start and start.date(), "Europe/Berlin")
    choices = parsed(tmp_path, text)
    assert choices.chosen == bool(name)
    if name:
        dues = [one.due for one in choices.lessons.values()]
        assert dues == sorted(dues) and dues[-1].hour in (21, 22)
        for before, later in itertools.pairwise(choices.lessons.values()):
            assert before.due < later.release  # a release holds the solutions of those before
    commented = [line[2:] for line in text.splitlines() if line.startswith("# [")]
    assert {"[late]", "[sections]", "[groups]", "[lessons.05]"} <= set(commented)


def test_the_examples_in_the_comments_are_right(tmp_path):
    lines = plan.text().splitlines()
    table = lines[lines.index("# [late]") :]
    kept = [line[2:] for line in table if line.startswith("# ") and ("=" in line or "[" in line)]
    choices = parsed(tmp_path, "\n".join(['timezone = "Europe/Berlin"', *kept]))
    assert choices.late == Late(10, 1, 50) and choices.groups == {"one": ("ada", "alan")}
    assert choices.lessons["05_scaled_dot_product_attention"].changes


def test_late_work_loses_a_share_for_each_day_that_has_begun():
    rule, day, hour = Late(10, grace_hours=1, most_percent=25), 86400, 3600
    assert rule.penalty(20, hour) == 0 and rule.penalty(20, hour + 1) == 2
    assert rule.penalty(20, day) == 2 and rule.penalty(20, day + 1) == 4
    assert rule.penalty(20, 30 * day) == 5 and Late(100).penalty(7, 1) == 7


@pytest.mark.parametrize("said", ["2026-12-01T22:59 UTC", " 2026-12-01 22:59Z ", "20261201T2259Z"])
def test_a_time_is_what_the_commands_take_for_one(tmp_path, said):
    choices = parsed(tmp_path, f'[lessons.01]\ndue = "{said}"')
    assert choices.lessons["01_kernel_regression"].due == course_file.read_time(said)


def test_a_timezone_that_is_no_name_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(CourseError, match="there is no timezone"):
        parsed(tmp_path, plan.text(timezone='UTC"'))
