"""The command ``autograder``: one module a subcommand. Read cli.py first.

Each has ``DESCRIPTION``, ``add_arguments(parser)`` and ``run(options)``, which returns the exit
status, and is imported only to be run.
"""

import argparse
from typing import Any

LESSONS: dict[str, Any] = {
    "nargs": "*",
    "metavar": "LESSON",
    "help": "number or name, as in 01 or kernel_regression (default: all lessons)",
}
SEVERAL: dict[str, Any] = {"action": "append", "default": []}
SHARED: dict[str, dict[str, Any]] = {
    "--course": {"metavar": "DIR", "help": "folder with nbgrader_config.py (default: this one)"},
    "--db-url": {"metavar": "URL", "help": "the gradebook (default: that of nbgrader_config.py)"},
    "--lesson": SEVERAL | {"metavar": "L", "help": "only this lesson; repeatable"},
    "--sandbox": {
        "choices": ("required", "auto", "off"),
        "default": "auto",
        "help": "bubblewrap: required, if installed (auto, the default), or never (off)",
    },
    "--section": SEVERAL | {"metavar": "NAME", "help": "only a section of class/course.toml"},
    "--student": SEVERAL | {"metavar": "S", "help": "only this student; repeatable"},
}


def add_shared(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add options that several commands have."""
    for name in names:
        parser.add_argument(name, **SHARED[name])
