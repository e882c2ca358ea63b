"""What is kept of a graded submission: its notebook and, beside it, three files.

``reasons.json``           written last, in one step: where it is, the grading was complete. It says
                           how the work was graded, and holds digests of what the result depends
                           on, by which a later run recognises unchanged work
``timestamp.txt``          when it was handed in, by which ``nbgrader autograde`` knows newer work
``submission_secret.txt``  release_feedback makes of it the page's name in the exchange

The last two are nbgrader's; release_feedback stops for the whole class where one of them is
missing, so both are always there.
"""

import json
import re
import secrets
import shutil
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

from nbgrader.utils import parse_utc

from autograder.files import write_aside
from autograder.grading.notebook.result import Result
from autograder.grading.notebook.submission import is_linked, read_bytes

REASONS = "reasons.json"
ABOUT = (
    "What the checks gave. Scores that somebody changed by hand, extra points and late penalties "
    "are in nbgrader's gradebook, which is what counts."
)
NAMES = TIMESTAMP, SECRET = "timestamp.txt", "submission_secret.txt"
MAX_BYTES = 1000
APART = re.compile(r" (?=[+-]\d\d:?\d\d$)")  # before an offset: nbgrader would take it for seconds
# Of a submission that says no time: before every other, so that what comes later counts as new.
NO_TIME = datetime(1970, 1, 1)


def save(folder: Path, notebook: dict[str, Any], name: str, result: Result) -> None:
    """Write the graded notebook and the reasons of a Result into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(notebook, ensure_ascii=False) + "\n"
    write_aside(folder / f"{name}.ipynb", text.encode())
    save_reasons(folder, result)


def read_notebook(path: Path | str) -> dict[str, Any]:
    """A notebook of our own making as plain values; nbformat would spend its time validating it."""
    notebook = json.loads(Path(path).read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    return notebook


def save_reasons(folder: Path, result: Result) -> None:
    told = {"about": ABOUT, **result.as_dict()}
    write_aside(folder / REASONS, json.dumps(told, indent=1, ensure_ascii=False).encode())


def load(folder: Path) -> Result | None:
    """The Result kept in ``folder``, or None."""
    try:
        return Result.from_dict(json.loads((folder / REASONS).read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return None


def forget(folder: Path) -> None:
    """Remove the reasons, also a student's own of that name: what was graded is graded again."""
    make_room(folder / REASONS)
    (folder / REASONS).unlink(missing_ok=True)


def timestamp(folder: Path, zone: tzinfo | None = None) -> str:
    """The time that a folder's timestamp.txt says, as text, or '' if it is missing or says none.

    zone  whose abbreviations, as CEST, are told in UTC, for which nbgrader's parser takes them
    """
    text = _said(folder) if moment(folder) else ""
    local, _, name = text.rpartition(" ")
    for fold in (0, 1) if zone and local and name.isalpha() and name != "UTC" else ():
        at = parse_utc(local).replace(tzinfo=zone, fold=fold)
        if at.tzname() == name:
            return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f} UTC"
    return text


def moment(folder: Path) -> datetime | None:
    """The time that a folder's timestamp.txt says, in UTC without a zone, or None."""
    try:
        return parse_utc(_said(folder))
    except Exception:  # a parser of dates trips in many ways over a student's file
        return None


def write_companions(submitted: Path, autograded: Path, feedback: Path) -> None:
    """Write both files into the folder ``autograded``, where a submission was graded anew.

    submitted  the student's folder, which may lack both files or hold anything in their place
    feedback   the folder of its page, if there is one: a new page has the secret of the old one
    """
    autograded.mkdir(parents=True, exist_ok=True)
    write_time(autograded, moment(submitted) or NO_TIME)
    make_room(autograded / SECRET)
    # The one that ``nbgrader submit`` gave; a link would lead to another student's.
    own = "" if is_linked(submitted) else _secret(submitted)
    secret = own or _secret(feedback) or secrets.token_hex(64)
    write_aside(autograded / SECRET, secret.encode())


def has_companions(autograded: Path) -> bool:
    """Whether both files are there."""
    return bool(timestamp(autograded) and _secret(autograded))


def write_time(folder: Path, time: datetime) -> None:
    """Write a time, in UTC without a zone, as the folder's timestamp.txt."""
    make_room(folder / TIMESTAMP)
    text = time.isoformat(sep=" ", timespec="microseconds") + " UTC"
    write_aside(folder / TIMESTAMP, text.encode())


def make_room(path: Path) -> None:
    """Remove a folder that lies where the file belongs: nbgrader copies what a student made."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)


def _secret(folder: Path) -> str:
    """The secret in a folder, or '' if there is none that is hard to guess."""
    text = _text(folder / SECRET)
    return text if re.fullmatch(r"[!-~]{16,}", text) else ""


def _said(folder: Path) -> str:
    return APART.sub("", _text(folder / TIMESTAMP))


def _text(path: Path) -> str:
    return (read_bytes(path, MAX_BYTES) or b"").decode(errors="replace").strip()
