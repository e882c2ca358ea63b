"""The pieces that a student wrote, in the places of the library's.

`autograder collect` writes the exercises that pass into a folder, one module per lesson, and says
in collected.json which are the student's. `put` hands them to every module of the course: whatever
holds the library's piece, under any name, then holds the student's, and a class that is built on
the library's is built on the student's. Nothing is reloaded; `put` with other names takes it back.
"""

import importlib
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from autograder.pieces import MineError, Piece, import_file, read

FOLDER = "mine"
_in_use: dict[str, Any] = {}  # the student's pieces that `put` put in place, by name
_placed: list["Pieces"] = []  # the folder whose pieces `put` was last given, if they are in place


@dataclass
class Pieces:
    """The pieces of a folder: what was collected, and what could be read of it.

    own      {name: the student's function or class}
    library  {name: the library's}, of the same names
    why      {name: a sentence}: collected pieces that cannot be used, and why not
    """

    folder: Path
    every: list[Piece]
    own: dict[str, Any] = field(default_factory=dict)
    library: dict[str, Any] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)

    def of(self, name: str) -> Piece:
        """The piece of this name."""
        return next(piece for piece in self.every if piece.name == name)

    def file(self, name: str) -> Path:
        """Where the student's piece stands."""
        return self.folder / f"{self.of(name).lesson}.py"


def load(folder: Path) -> Pieces:
    """Read the folder and import its modules; what cannot be imported is left to the library.

    Raises MineError as `read` does.
    """
    take_back()
    found = Pieces(folder.resolve(), read(folder))
    for lesson in dict.fromkeys(piece.lesson for piece in found.every if piece.yours):
        names = [one.name for one in found.every if one.yours and one.lesson == lesson]
        try:
            home = importlib.import_module(f"attention.{lesson}")
        except ModuleNotFoundError:  # in a student's copy, the library of lessons to come
            found.why |= dict.fromkeys(names, f"attention/{lesson}.py is not here yet")
            continue
        try:
            module = import_file(found.folder / f"{lesson}.py")
        except MineError as error:
            found.why |= dict.fromkeys(names, str(error))
            continue
        for name in names:
            found.library[name] = getattr(home, name)
            value = getattr(module, name, None)
            problem = _unlike(value, found.library[name])
            if problem:
                found.why[name] = f"{name} in {found.file(name)} {problem}"
            else:
                found.own[name] = value
    return found


def _unlike(value: Any, library: Any) -> str:
    """Why this cannot take the place of the library's, or ''."""
    if value is None:
        return "is missing"
    if isinstance(library, type) and not isinstance(value, type):
        return "is no class, and the library builds on the class"
    return "" if callable(value) else "cannot be called"


def own(name: str) -> Any:
    """The student's piece of this name if it is in use, else None."""
    return _in_use.get(name)


def placed() -> Pieces | None:
    """The pieces that `put` was last given, though it may have put none of them in place."""
    return _placed[0] if _placed else None


def take_back() -> None:
    """Put the library's pieces back everywhere."""
    if _placed:
        put(_placed[0], ())
        _placed.clear()


def put(pieces: Pieces, names: Collection[str]) -> None:
    """Put the student's pieces of these names in place, and the library's of all the others."""
    chosen = {n: pieces.own[n] if n in names else pieces.library[n] for n in pieces.own}
    if _placed and _placed[0] is not pieces:
        take_back()
    _placed[:] = [pieces]
    _in_use.clear()
    _in_use.update({name: pieces.own[name] for name in pieces.own if name in names})
    # Keys are identities: a piece is itself under any name, and a namesake is another piece.
    instead = {
        id(one): chosen[name]
        for name in pieces.own
        for one in (pieces.own[name], pieces.library[name])
    }
    for module in _modules():
        for key, value in list(vars(module).items()):
            if id(value) in instead:
                setattr(module, key, instead[id(value)])
            elif isinstance(value, type) and value.__module__ == module.__name__:
                _build_on(value, instead)
    for piece in (*pieces.own.values(), *pieces.library.values()):  # hidden by another just now
        if isinstance(piece, type):
            _build_on(piece, instead)


def _modules() -> Iterator[ModuleType]:
    """The modules of the course, the student's, and what is being run."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "attention" or name.startswith("mine_") or name == "__main__":
            yield module


def _build_on(cls: type, instead: dict[int, Any]) -> None:
    """Replace bases of a class; a class that stands in for its own base keeps it."""
    bases = tuple(instead.get(id(base), base) for base in cls.__bases__)
    if bases != cls.__bases__ and not any(issubclass(base, cls) for base in bases):
        cls.__bases__ = bases
