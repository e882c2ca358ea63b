"""Whether a release holds a line of a solution: every file of it is searched."""

import functools
import gzip
import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence

from autograder import ROOT, lessons
from autograder.building.gates.text import given, normal, solutions
from autograder.building.lesson import Lesson, find, read
from autograder.settings import COURSE

COMPILED = (".pyc", ".pyo", ".so", ".pyd")


def leaks(files: Mapping[str, bytes], slugs: Sequence[str]) -> list[str]:
    """What of solutions stands in the ``files`` of a release of ``slugs``: sentences."""
    secret = secrets(slugs)
    said = {f"{path} is compiled code" for path in files if path.endswith(COMPILED)}
    for path, content in files.items():
        found = _shown(path.rpartition("/")[2], content) & secret.keys()
        said |= {f"{path} shows a line of {secret[line]}'s solution: {line}" for line in found}
    return sorted(said)


@functools.cache
def all_lessons() -> tuple[Lesson, ...]:
    """The course's lessons, read once: that takes seconds."""
    return tuple(map(read, find()))


def secrets(slugs: Sequence[str]) -> dict[str, str]:
    """What a release of these lessons keeps back: compact line → the exercise that it solves.

    It is the solutions of the first of them and of all after it. What an earlier lesson's library
    holds as well is no secret: its students wrote it. Nor is what the notebook of another lesson,
    up to the last of these, shows of it.
    """
    known = all_lessons()
    before = [normal(one.library.read_text("utf-8")) for one in known if one.slug < min(slugs)]
    public = {line for one in known for line in given(one)} | set(map(normal, COURSE.idioms))
    seen = {one.slug: _notebook(one) for one in known if one.slug <= max(slugs)}
    return {
        line: name
        for slug, name, line in _solutions()
        if slug >= min(slugs)
        and line not in public
        and not any(line in text for text in before)
        and not any(line in text for other, text in seen.items() if other != slug)
    }


@functools.cache
def _solutions() -> tuple[tuple[str, str, str], ...]:
    """Triples (lesson, exercise, compact line) of all solutions, read once like the lessons."""
    known = all_lessons()
    return tuple((one.slug, name, line) for one in known for name, line in solutions(one))


@functools.lru_cache(maxsize=500)
def _shown(name: str, content: bytes) -> frozenset[str]:
    """The lines of solutions, of whatever lesson, in a file: most files are in every release."""
    compact = _compact(name, content)
    return frozenset(line for line in {line for _, _, line in _solutions()} if line in compact)


def _notebook(lesson: Lesson) -> str:
    path = lessons.notebook(ROOT, "lessons", lesson.slug)
    return _compact(path.name, path.read_bytes())


@functools.lru_cache(maxsize=500)
def _compact(name: str, content: bytes) -> str:
    return "\n".join(map(normal, _texts(name, content)))


def _texts(path: str, content: bytes) -> Iterator[str]:
    """The texts of a file: of a notebook its cells, of an archive what is in it."""
    if path.endswith(".ipynb"):
        for cell in json.loads(content)["cells"]:
            yield "".join(cell["source"])
            yield json.dumps(cell.get("outputs", []))
    elif path.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield from _texts(name, archive.read(name))
    elif path.endswith(".gz"):
        yield from _texts(path.removesuffix(".gz"), gzip.decompress(content))
    else:
        yield content.decode("utf-8", "ignore")
