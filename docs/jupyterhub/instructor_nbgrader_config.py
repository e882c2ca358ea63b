"""nbgrader's settings for an instructor: ~/.jupyter/nbgrader_config.py on the hub."""

from pathlib import Path

from autograder.course import configure

c = configure(get_config(), Path.home() / "course")  # noqa: F821  (nbgrader provides it)
c.Exchange.root = "/srv/nbgrader/exchange"
