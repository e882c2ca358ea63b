"""Which modules of the course some code imports, directly or through others: found by reading."""

import ast
import hashlib
import itertools
import json
import os
from collections.abc import Container, Iterable
from functools import lru_cache
from pathlib import Path

from autograder.settings import COURSE

LATER = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def modules(
    names: Iterable[str],
    root: Path,
    packages: tuple[str, ...] = (COURSE.library,),
    hidden: Container[Path] = (),
    by_name: bool = False,
) -> list[Path]:
    """Paths of the modules with these dotted ``names``, and of all that they import, in order.

    packages  those below ``root`` whose modules count
    hidden    paths of modules that cannot be imported
    by_name   follow importlib too, by the names of modules that stand as strings in such a module
    """
    found: set[Path] = set()
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        package, *rest = name.split(".")
        if package not in packages or name in seen:  # most are others', or come again
            continue
        seen.add(name)
        path = root.joinpath(package, *rest).with_suffix(".py")
        if path in hidden or not os.path.isfile(path):  # no error where no path can be so long
            continue
        found.add(path)
        text = path.read_text(encoding="utf-8")
        waiting += imported(text, ".".join([package, *rest[:-1]]))
        waiting += _named(text) if by_name else ()
    return sorted(found)


def of_lesson(name: str, root: Path, more: Iterable[str] = (), by_name: bool = False) -> list[Path]:
    """Paths of a lesson's cards, of what its checks, answers and library import, of ``more``.

    name  of the lesson's modules, as in 'masked_attention'
    """
    kinds = ("autograder.checks", COURSE.library, "autograder.mistakes")
    start = [*(f"{kind}.{name}" for kind in kinds), *more]
    cards = root / "autograder" / "mistakes" / f"{name}.md"
    found = modules(start, root, (COURSE.library, "autograder"), by_name=by_name)
    return [*([cards] if cards.is_file() else []), *found]


@lru_cache(maxsize=1000)
def imported(code: str, package: str = "", at_once: bool = False) -> frozenset[str]:
    """Dotted names of all that ``code``, of a module of ``package``, may import.

    What it runs as a program of its own counts, too, where ``"-m"`` and the name stand in a list.

    at_once  only what is needed to import the code itself: nothing that its functions import
    """
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(code)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            start = ".".join([*above, *([node.module] if node.module else [])])
            found |= {start, *(f"{start}.{alias.name}" for alias in node.names)}
        elif not (at_once and isinstance(node, LATER)):
            found |= _run_as_programs(node) if isinstance(node, ast.List) else set()
            waiting += ast.iter_child_nodes(node)
    return frozenset(found)


def _run_as_programs(node: ast.List) -> set[str]:
    words = [getattr(element, "value", None) for element in node.elts]
    pairs = itertools.pairwise(words)
    return {name for option, name in pairs if option == "-m" and isinstance(name, str)}


@lru_cache(maxsize=1000)
def _named(text: str) -> tuple[str, ...]:
    """The modules of the library that a module which uses importlib may mean by a string."""
    if "importlib" not in text or "importlib" not in imported(text):  # few say the word at all
        return ()
    nodes = ast.walk(ast.parse(text))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    names = (one for one in texts if isinstance(one, str) and one.isidentifier())
    return tuple(f"{COURSE.library}.{one}" for one in names)


def digest_of(paths: Iterable[Path], root: Path) -> str:
    """A digest of files below ``root``, and of what makes packages of their folders."""
    paths = set(paths)
    modules_of = [path for path in paths if path.suffix == ".py"]
    paths |= {folder / "__init__.py" for path in modules_of for folder in path.parents}
    found = {str(path.relative_to(root)): path for path in paths if path.is_file()}
    listing = [
        [name, hashlib.sha256(found[name].read_bytes()).hexdigest()] for name in sorted(found)
    ]
    return hashlib.sha256(json.dumps(listing).encode()).hexdigest()[:16]
