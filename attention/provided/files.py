"""Where the course is stored, and how a text is read that somebody else has written."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # the folder that holds attention/ and data/


def utf_8(content: bytes, line: int = 1) -> str:
    """The text of some bytes in UTF-8, without the mark that may be at its beginning.

    line  the number of the first of its lines

    Raises ValueError, a sentence that names the first byte that is no UTF-8, and its place.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        *before, last = error.object[: error.start].decode().split("\n")
        raise ValueError(
            f"line {line + len(before)}, character {len(last) + 1} is the byte "
            f"0x{error.object[error.start]:02X}: mend it there, or if all of the text is in "
            "Latin-1, convert it with iconv -f LATIN1 -t UTF-8"
        ) from None
