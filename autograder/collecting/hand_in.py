"""One notebook that came back: whose it is, of which lesson, and whether it can be read."""

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from autograder.collecting import filename_clues as names
from autograder.collecting.filename_clues import Clues
from autograder.collecting.roster import Roster
from autograder.collecting.search import File, Refused
from autograder.grading.notebook.filenames import is_notebook
from autograder.grading.notebook.submission import Submission, is_of, parse
from autograder.term.course_file import Choices

SECOND = timedelta(seconds=1)
NAMELESS = "its name does not say which lesson it is of"
NOTHING = "it has none of the lesson's cells or functions"
NO_NOTEBOOK = "it is not a notebook (.ipynb)"


@dataclass(frozen=True)
class HandIn:
    """A notebook whose student and lesson are known. ``damage`` says why nothing is in it."""

    file: File
    clues: Clues
    student: str
    lesson: str
    digest: bytes
    damage: str = ""
    group: str = ""  # the group in whose name it came

    def when(self, due: datetime | None, at: datetime | None = None) -> datetime:
        """When it was handed in: at the time ``at``, else the file's, as far as the LMS agrees.

        In Canvas' zips all files have the time of the download, and a name says who is late, but
        not by how much: the least is counted.
        """
        if at or due is None or self.clues.late is None:
            return at or self.file.moment
        return due + SECOND if self.clues.late else min(self.file.moment, due)


@dataclass(frozen=True)
class Judge:
    """Says of each file whose hand-in it is."""

    slugs: Collection[str]  # the lessons of the course
    chosen: Collection[str]  # those that are asked for
    solved: Callable[[str], Mapping[str, Any]]  # gives a lesson's solved notebook
    roster: Roster
    pattern: re.Pattern[str] | None  # what says whose a file is, if not its name alone
    choices: Choices

    def hand_in(self, file: File) -> HandIn:
        """The HandIn that a file is; raises Refused, in words, if it is none."""
        if not is_notebook(file.parts[-1]):
            raise Refused(NO_NOTEBOOK)
        data = file.read()
        clues = names.read(file.parts, self.slugs, self.pattern)
        submission = parse(data)
        lesson, damage = self._lesson(submission, clues), submission.problem
        if lesson not in self.chosen:
            raise Refused(f"it is of another lesson, {lesson}")
        owner = names.owner(clues, self.roster, self.choices.together(lesson))
        if not owner.id:
            raise Refused(owner.why)
        digest = hashlib.sha256(data).digest()
        return HandIn(file, clues, owner.id, lesson, digest, damage, owner.group)

    def _lesson(self, submission: Submission, clues: Clues) -> str:
        """The lesson whose cells or functions it has; of what cannot be read, what it is called."""
        if submission.problem:
            if not clues.lesson:
                raise Refused(f"{submission.problem}, and {NAMELESS}")
            return clues.lesson
        for named in (submission.lesson, clues.lesson):
            if named in self.slugs and is_of(submission, self.solved(named)):
                return named
        if submission.lesson in self.slugs:
            submission.problem = f"it says that it is of {submission.lesson}, but {NOTHING}"
            return submission.lesson
        if clues.lesson:
            raise Refused(f"it is called like {clues.lesson}, but {NOTHING}")
        raise Refused("neither its name nor what is in it says which lesson it is of")
