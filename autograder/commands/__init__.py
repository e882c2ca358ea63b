"""The command ``autograder``: one module a subcommand.

Each has ``HELP`` (a line), ``DESCRIPTION``, ``add_arguments(parser)`` and ``run(options)``, which
returns the exit status. They are imported to build the parser, so what is slow to import is
imported in ``run``.
"""

from typing import Any

LESSONS: dict[str, Any] = {
    "nargs": "*",
    "metavar": "LESSON",
    "help": "number or name, as in 01 or kernel_regression (default: all lessons)",
}
