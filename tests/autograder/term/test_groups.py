"""One hand-in for several: copies come and go, and nobody's own work is touched."""

import pytest

from autograder import CourseError
from autograder.term import groups
from autograder.term.course_file import Choices, LessonChoice

SLUG = "05_scaled"


def choices(tmp_path, members=("ada", "alan", "eve"), alone=False):
    named = {"one": members} if members else {}
    lessons = {SLUG: LessonChoice(SLUG, alone=alone)}
    return Choices(tmp_path / "course.toml", lessons, groups=named)


def write(tmp_path, student, text, time=""):
    folder = tmp_path / "submitted" / student / SLUG
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{SLUG}.ipynb").write_text(text)
    if time:
        (folder / "timestamp.txt").write_text(time)


def share(tmp_path, *arguments, **named):
    return groups.share(choices(tmp_path, *arguments, **named), tmp_path / "submitted")


def there(tmp_path):
    found = (tmp_path / "submitted").glob(f"*/{SLUG}/{SLUG}.ipynb")
    return {path.parts[-3]: path.read_text() for path in found}


def test_the_others_get_the_work_and_its_time(tmp_path):
    write(tmp_path, "alan", "A", "2026-10-01 10:00:00 UTC")
    assert share(tmp_path) == []
    assert there(tmp_path) == dict.fromkeys(("ada", "alan", "eve"), "A")
    time = tmp_path / "submitted" / "eve" / SLUG / "timestamp.txt"
    assert time.read_text() == "2026-10-01 10:00:00 UTC"
    copies = groups.copies(choices(tmp_path))
    assert copies == {(SLUG, "ada"): "alan", (SLUG, "eve"): "alan"}


def test_a_later_hand_in_replaces_the_copies(tmp_path):
    write(tmp_path, "alan", "A")
    own = tmp_path / "submitted" / "alan" / SLUG / f"{SLUG}.ipynb"
    own.rename(own.with_name(f"{SLUG} (1).ipynb"))  # as a browser does
    share(tmp_path)
    assert there(tmp_path) == dict.fromkeys(("ada", "eve"), "A")
    write(tmp_path, "alan", "B")
    share(tmp_path)
    assert there(tmp_path) == dict.fromkeys(("ada", "alan", "eve"), "B")


def test_who_handed_in_their_own_keeps_it_and_the_latest_counts_for_the_rest(tmp_path):
    write(tmp_path, "alan", "A", "2026-10-01 10:00:00 UTC")
    share(tmp_path)
    write(tmp_path, "ada", "B", "2026-10-02 10:00:00 UTC")
    (said,) = share(tmp_path)
    assert there(tmp_path) == {"ada": "B", "alan": "A", "eve": "B"}
    assert "ada and alan of group one handed in different work" in said
    assert "eve are graded by the latest, that of ada" in said


def test_copies_go_with_their_source_and_with_the_group(tmp_path):
    write(tmp_path, "alan", "A")
    share(tmp_path)
    share(tmp_path, members=("alan", "ada"))
    assert there(tmp_path) == {"alan": "A", "ada": "A"}
    share(tmp_path, alone=True)
    assert there(tmp_path) == {"alan": "A"}
    assert not (tmp_path / "submitted" / "ada").exists()
    share(tmp_path)
    (tmp_path / "submitted" / "alan" / SLUG / f"{SLUG}.ipynb").unlink()
    share(tmp_path)
    assert there(tmp_path) == {} and not [*groups.copies(choices(tmp_path))]


def test_what_is_no_copy_any_more_is_never_removed(tmp_path):
    write(tmp_path, "alan", "A")
    share(tmp_path)
    write(tmp_path, "eve", "own")
    share(tmp_path, members=())
    assert there(tmp_path) == {"alan": "A", "eve": "own"}


def test_a_folder_that_leads_elsewhere_gives_nothing(tmp_path):
    write(tmp_path, "mallory", "SECRET")
    (tmp_path / "submitted" / "alan").mkdir()
    (tmp_path / "submitted" / "alan" / SLUG).symlink_to(tmp_path / "submitted" / "mallory" / SLUG)
    share(tmp_path)
    assert set(there(tmp_path)) == {"mallory", "alan"}


def test_a_record_that_cannot_be_read_stops_it(tmp_path):
    (tmp_path / groups.RECORD).write_text("{")
    with pytest.raises(CourseError, match="says which notebooks are copies"):
        share(tmp_path)


def test_a_slip_in_an_id_is_said_with_whom_is_meant(tmp_path):
    chosen = choices(tmp_path, members=("s19", "s2O"))
    said = groups.unknown(chosen, dict.fromkeys(["s18", "s19", "s20"], True))
    assert said.endswith("groups.one names s2O, who is not in the roster; did you mean s20?")
    assert groups.unknown(chosen, dict.fromkeys(["s19", "s2O"], True)) == ""
