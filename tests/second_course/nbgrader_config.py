"""nbgrader's settings for this course."""

from pathlib import Path

from autograder.course import configure

configure(get_config(), Path(__file__).resolve().parent)  # noqa: F821  (nbgrader provides it)
