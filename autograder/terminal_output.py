"""What a program prints, where it goes to a terminal or a pipe that cannot show all of it."""

import io
import re
import sys

# What a terminal would obey, and what would make a line read in another order than it is written.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)


def replace_what_cannot_be_shown() -> None:
    """From now on print "?" for a character that the output's encoding lacks, as √ in cp1252.

    Windows gives a pipe, a file or an editor's console such an encoding. Without this, print stops
    the program with UnicodeEncodeError.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def printable(text: str) -> str:
    """A text that others wrote, without what steers a terminal; also halves of characters go.

    >>> printable("a\\x1b[31mb\\n")
    'a[31mb\\n'
    """
    return _CONTROL.sub("", text.encode("utf-8", "replace").decode())


def readable(number: int) -> str:
    """A number with its digits in groups of three.

    >>> readable(1801238)
    '1 801 238'
    """
    return f"{number:_}".replace("_", " ")
