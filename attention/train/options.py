"""How the commands of the library read their options."""

import argparse
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Says in one sentence what is wrong with the options."""

    def error(self, message: str) -> NoReturn:
        """Print the message and end the program."""
        self.exit(2, f"{self.prog}: {message} (--help lists the options)\n")
