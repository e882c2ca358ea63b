"""What a program prints, where it goes to a terminal or a pipe that cannot show all of it."""

import io
import sys


def replace_what_cannot_be_shown() -> None:
    """From now on print "?" for a character that the output's encoding lacks, as √ in cp1252.

    Windows gives a pipe, a file or an editor's console such an encoding. Without this, print stops
    the program with UnicodeEncodeError.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def readable(number: int) -> str:
    """A number with its digits in groups of three.

    >>> readable(1801238)
    '1 801 238'
    """
    return f"{number:_}".replace("_", " ")
