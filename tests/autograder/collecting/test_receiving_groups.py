"""``autograder receive`` in a class with groups and a zone: who got what, and by which clock."""

import pytest

from tests.autograder.collecting.conftest import FIRST, SECOND, notebook

HOME = f"{FIRST}/{FIRST}.ipynb"
STUDENTS = ["ada", "alan", "ben", "eve"]
CHOSEN = f"""
timezone = "Asia/Tokyo"
[lessons.{FIRST}]
[lessons.{SECOND}]
[groups]
g1 = ["ada", "alan"]
g2 = ["ben", "eve"]
"""
GROUPS = f"g1_5550001_assignsubmission_file_/{FIRST}.ipynb"
OLD, NEW = notebook(answer="old"), notebook(answer="new")


@pytest.fixture(autouse=True)
def the_class(root, run):
    (root / "class" / "course.toml").write_text(CHOSEN)
    rows = [f"{one},{one.title()},Smith" for one in STUDENTS]
    (root / "roster.csv").write_text("\n".join(["id,first_name,last_name", *rows]))
    assert run("roster", root / "roster.csv")[0] == 0


@pytest.mark.parametrize("path", [GROUPS, f"g1_4711_67890_{FIRST}.ipynb"], ids=["Moodle", "Canvas"])
def test_what_a_group_hands_in_comes_to_all_its_members(run, came, submitted, path):
    for content in (OLD, NEW):
        status, said, err = run("receive", came({path: content}), "--at", "2199-01-01T12:00")
        assert (status, err) == (0, "")
        assert submitted() == {f"ada/{HOME}": content, f"alan/{HOME}": content}
        assert f"{FIRST}: the work of group g1 is kept as ada's." in said
        assert "Handed in by another member of the student's group: 1." in said


def test_a_group_has_no_work_of_a_lesson_that_all_do_alone(root, run, came, submitted):
    alone = CHOSEN.replace(f"[lessons.{FIRST}]", f"[lessons.{FIRST}]\nalone = true")
    (root / "class" / "course.toml").write_text(alone)
    status, _, err = run("receive", came({GROUPS: OLD}))
    assert status == 1 and submitted() == {} and "no student of the roster is called g1" in err


def test_a_dry_run_says_how_each_is_taken_and_counts_the_other_members(run, came):
    by_name = "g2-Eve Smith_5550003_assignsubmission_file_/my work.ipynb"
    folder = came({GROUPS: OLD, by_name: NEW, f"ben/{HOME}": OLD})
    words = ("receive", folder, "--at", "2199-01-01T12:00")
    dry, real = run(*words, "--dry-run")[1], run(*words)[1]
    assert [line for line in dry.splitlines() if " goes to " in line] == [
        f"  ben/{HOME} goes to ben, {FIRST}: Tue 1 Jan 2199, 12:00",
        f"  {GROUPS} goes to ada, {FIRST}: Tue 1 Jan 2199, 12:00",
        f"  {by_name} goes to eve, {FIRST}: Tue 1 Jan 2199, 12:00",
    ]
    assert " goes to " not in real
    assert all(f"Handed in nothing of {FIRST}: 0 of 4." in said for said in (dry, real))


def test_times_are_the_classs(run, came):
    run("due", "0", "2020-01-01T09:00")
    folder = came({f"ben/{HOME}": OLD})
    said = run("receive", folder)[1]
    assert f"Late with {FIRST}, due Wed 1 Jan 2020, 09:00: ben (" in said and " late)" in said
    _, _, err = run("receive", came({f"ben/{HOME}": NEW}), "--at", "2019-12-01T09:00")
    assert "a later hand-in, of" in err and "UTC" not in err


def test_groups_of_other_lessons_are_not_told(run, came):
    for content, student in ((OLD, "ada"), (NEW, "alan")):
        run("receive", came({f"{student}/{HOME}": content}))
    more = came({f"ben/{SECOND}.ipynb": notebook(SECOND)})
    said = run("receive", more)[1]
    assert "ada and alan of group g1 handed in different work" in said
    said = run("receive", more, "--lesson", "1")[1]
    assert "different work" not in said
    assert "Handed in by another member of the student's group: 1." in said
