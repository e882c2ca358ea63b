"""A student's wrong answer as a card: the edit of the right answer that replies as it does."""

import warnings
from collections.abc import Sequence

from autograder import CourseError
from autograder.checking.asking.right_answer import asked
from autograder.checking.diagnosis import as_edit
from autograder.checking.toolbox.registry import Check
from autograder.explaining import replay
from autograder.explaining.replay import ANY_SEED
from autograder.sandbox.sandbox import Sandbox

CARD = """\
Below the heading of the exercise in {into}, once the hint is written:

## {exercise}

- …
{edit}
"""


def text(item: Check, sandbox: Sandbox, cells: Sequence[str], into: str) -> str:
    """A card for an answer, or which stored mistake it is; '' where no small edit replies so.

    cells  of the notebook, up to the answer's check, as from ``replay.sources``
    into   the file in which the card is to stand

    Raises CourseError where the notebook defines no such answer.
    """
    answer = replay.answer(item, sandbox, cells)
    if answer is None:
        raise CourseError(f"the notebook defines no function or class {item.name!r}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = replay.answers(answer, asked(item, ANY_SEED)[0])
        known = as_edit.known_as(item, given, ANY_SEED)
        if known is not None:
            return f"# This is {known.name} already, which is told: {known.hint}\n"
        edit = as_edit.edit(item, given, ANY_SEED)
    return CARD.format(into=into, exercise=item.name, edit=edit) if edit else ""
