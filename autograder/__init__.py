"""The grader of a course: build, check, verify, release and grade its notebooks.

Read check.py first, what notebooks call, then course.py, what nbgrader calls.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class CourseError(Exception):
    """Something that whoever called can mend; str() is one sentence that says what and how."""
