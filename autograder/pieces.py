"""A folder of the pieces that a student wrote: `autograder collect` makes it, others read it.

It holds one module per lesson, and collected.json says which of its pieces are the student's.
"""

import hashlib
import importlib.util
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

RECORD = "collected.json"


class MineError(ValueError):
    """A folder of collected pieces cannot be used; str() is one sentence that says what to do."""


@dataclass(frozen=True)
class Piece:
    """One exercise: its name, its lesson's module, its notebook, and if not the student's, why."""

    name: str
    lesson: str
    notebook: str
    why: str = ""

    @property
    def yours(self) -> bool:
        """Whether the student's own was collected."""
        return not self.why


def read(folder: Path) -> list[Piece]:
    """What `autograder collect` wrote down in the folder; MineError if there is nothing."""
    path = folder / RECORD
    try:
        return [Piece(**one) for one in json.loads(path.read_text(encoding="utf-8"))["pieces"]]
    except FileNotFoundError:
        raise MineError(
            f"{folder} holds no collected pieces: `autograder collect` makes such a folder"
        ) from None
    except (OSError, ValueError, TypeError, KeyError):
        raise MineError(f"{path} cannot be read: run `autograder collect` again") from None


def import_file(path: Path) -> ModuleType:
    """Import one module of a folder of pieces, anew; MineError if it cannot be imported.

    Its name holds a digest of the folder, so two folders do not mix.
    """
    digest = hashlib.sha256(str(path.parent).encode()).hexdigest()[:8]
    name = f"mine_{digest}.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise MineError(f"{path} cannot be imported: {brief(error)}") from None
    return module


def brief(error: BaseException) -> str:
    """An error in one line, of which 200 characters are enough.

    >>> brief(ValueError("two\\nlines"))
    'ValueError: two lines'
    """
    said = " ".join(f"{type(error).__name__}: {error}".split())
    return said if len(said) <= 200 else f"{said[:198]} …"
