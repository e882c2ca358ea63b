"""Which lessons are as they were when they last passed all gates: autograder/verified.json says.

The file is to the gates what the digest in a solved notebook is to its execution: what did not
change since need not be proved again. `make test-all` goes through all gates whatever it says.
"""

import json
from collections.abc import Collection
from pathlib import Path

from autograder import ROOT, imports, lessons
from autograder.building.lesson import find
from autograder.files import write_aside

RECORD = Path("autograder") / "verified.json"
# Of an instructor's own lessons: git does not see this one, so no update of the course does.
OWN_RECORD = Path(".cache") / "verified.json"
GATES = "autograder.building.gates.verify"


def changed(names: Collection[str] = (), root: Path = ROOT) -> list[str]:
    """Those of the lessons that ``names`` select that are not as the record has them."""
    recorded = [_read(root / record) for record in (RECORD, OWN_RECORD)]
    slugs = [path.stem for path in find(names, root)]
    return [s for s in slugs if _digest(s, root) not in [noted.get(s) for noted in recorded]]


def record(slug: str, root: Path = ROOT) -> None:
    """Note that a lesson has passed all gates as it is."""
    place = root / (OWN_RECORD if slug >= lessons.OWN else RECORD)
    noted = _read(place) | {slug: _digest(slug, root)}
    there = {path.stem for path in find((), root)}
    text = json.dumps({slug: noted[slug] for slug in sorted(noted) if slug in there}, indent=1)
    place.parent.mkdir(exist_ok=True)
    write_aside(place, f"{text}\n".encode())


def _read(path: Path) -> dict[str, str]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _digest(slug: str, root: Path) -> str:
    """A digest of all that the gates read of a lesson, of their own modules, and of versions."""
    read = imports.of_lesson(lessons.name_of(slug), root, [GATES], by_name=True)
    read += [lessons.notebook(root, kind, slug) for kind in ("solutions", "lessons")]
    read += [root / "source" / f"{slug}.py", root / "constraints.txt"]
    read += (root / "data").rglob("*")
    return imports.digest_of(read, root)
