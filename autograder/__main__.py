"""``python -m autograder``: the command line where the course is not installed."""

import sys

from autograder.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
