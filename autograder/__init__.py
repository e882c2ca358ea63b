"""Grading of the attention course: build, check, verify, release and grade its notebooks."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class CourseError(Exception):
    """Something that whoever called can mend; str() is one sentence that says what and how."""
