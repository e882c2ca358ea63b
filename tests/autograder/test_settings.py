"""What is set in files: what course this is."""

import pytest

from autograder import CourseError
from autograder.settings import facts

LEAST = 'library = "convolution"\nname = "convolution"\ntitle = "Convolution"\n'


def test_three_lines_say_what_course_it_is(tmp_path):
    (tmp_path / "autograder.toml").write_text(LEAST)
    found = facts(tmp_path / "autograder.toml")
    assert (found.library, found.title, found.pages, found.commands) == (
        *("convolution", "Convolution", "", {}),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "No such file"),
        ("library = ", "Invalid value"),
        (LEAST.replace("title", "# title"), "'title'"),
        (f'{LEAST}subtitle = "x"', "'subtitle'"),
    ],
)
def test_what_does_not_say_it_is_refused(tmp_path, text, words):
    path = tmp_path / "autograder.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(CourseError, match=f"autograder.toml does not say .*{words}"):
        facts(path)
