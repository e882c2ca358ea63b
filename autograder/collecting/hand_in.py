"""One notebook that came back: whose it is, of which lesson, and whether it can be read."""

import functools
import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from autograder.collecting import clues as names
from autograder.collecting.clues import Clues
from autograder.collecting.roster import Roster
from autograder.collecting.search import File, Refused
from autograder.grading.filenames import is_notebook
from autograder.grading.submission import Unreadable, content, parse

SECOND = timedelta(seconds=1)
NO_NOTEBOOK = "it is not a notebook (.ipynb)"


@dataclass(frozen=True)
class HandIn:
    """A notebook whose student and lesson are known. ``damage`` says why it cannot be read."""

    file: File
    clues: Clues
    student: str
    lesson: str
    digest: bytes
    damage: str = ""

    def when(self, due: datetime | None, at: datetime | None = None) -> datetime:
        """When it was handed in: at the time ``at``, else the file's, as far as the LMS agrees.

        In Canvas' zips all files have the time of the download, and a name says who is late.
        """
        if at or due is None or self.clues.late is None:
            return at or self.file.moment
        if self.clues.late:
            return max(self.file.moment, due + SECOND)
        return min(self.file.moment, due)


class Judge:
    """Says of each file whose hand-in it is.

    slugs    the lessons of the course, and ``chosen`` those of them that are asked for
    cells    gives the names of a lesson's cells that nbgrader knows
    """

    def __init__(
        self,
        slugs: Collection[str],
        chosen: Collection[str],
        cells: Callable[[str], Collection[str]],
        roster: Roster,
        pattern: str | None,
    ) -> None:
        self._slugs, self._chosen, self._roster = slugs, chosen, roster
        self._cells = functools.cache(cells)
        self._pattern = names.pattern(pattern)

    def hand_in(self, file: File, shared: int = 0) -> HandIn:
        """The HandIn that a file is; raises Refused, in words, if it is none.

        shared  how many folders of its path are shared by all, and so no one's name
        """
        if not is_notebook(file.parts[-1]):
            raise Refused(NO_NOTEBOOK)
        data = file.read()
        clues = names.read(file.parts[shared:], self._slugs, self._pattern)
        notebook, damage = _opened(data)
        lesson = self._lesson(notebook, clues)
        if not lesson and damage:
            raise Refused(f"{damage}, and its name does not say which lesson it is of")
        if not lesson:
            raise Refused("neither its name nor what is in it says which lesson it is of")
        if lesson not in self._chosen:
            raise Refused(f"it is of another lesson, {lesson}")
        owner = names.owner(clues, self._roster)
        if not owner.id:
            raise Refused(owner.why)
        return HandIn(file, clues, owner.id, lesson, hashlib.sha256(data).digest(), damage)

    def _lesson(self, notebook: Any, clues: Clues) -> str:
        """What the notebook itself says, else its name, else whose cells it has; or ''."""
        metadata = notebook.get("metadata") if isinstance(notebook, dict) else None
        own = metadata.get("autograder") if isinstance(metadata, dict) else None
        said = own.get("lesson") if isinstance(own, dict) else None
        if isinstance(said, str) and said in self._slugs:
            return said
        if clues.lesson:
            return clues.lesson
        cells = {cell.grade_id for cell in parse(notebook).cells} - {""}
        shared = {slug: len(cells.intersection(self._cells(slug))) for slug in self._slugs}
        best = max(shared.values(), default=0)
        fitting = [slug for slug, count in shared.items() if count == best]
        return fitting[0] if best and len(fitting) == 1 else ""


def _opened(data: bytes) -> tuple[Any, str]:
    """Pair (the notebook or None, why it cannot be read or '')."""
    try:
        notebook = content(data, "it")
    except Unreadable as reason:
        return None, str(reason)
    return notebook, parse(notebook).problem
