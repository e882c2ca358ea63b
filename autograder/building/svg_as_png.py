"""The drawings as notebooks carry them: each SVG as the PNG that was made from it.

Markdown in VS Code shows no SVG out of a data URI, and JupyterLab none that is attached; both show
PNG.
"""

import hashlib
from pathlib import Path

KEYWORD = "SHA-256 of the drawing"  # of the PNG's text chunk
COMMAND = "python docs/make_pictures.py drawings"


def shown(drawing: Path) -> Path:
    """What a notebook shows of a drawing: the PNG beside it, or itself where there is none."""
    png = drawing.with_suffix(".png")
    return png if png.is_file() else drawing


def digest(drawing: Path) -> str:
    """What the PNG of a drawing says of its source."""
    return hashlib.sha256(drawing.read_bytes()).hexdigest()


def is_current(drawing: Path) -> bool:
    """Whether the drawing has not changed since its PNG was made, if there is one."""
    picture = shown(drawing)
    if picture == drawing:
        return True
    said = KEYWORD.encode() + b"\0" + digest(drawing).encode()
    return said in picture.read_bytes()
