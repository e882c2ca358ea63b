"""What a notebook's kernel notes while cells run, so that a check can say more than it sees.

A check sees a function. It cannot see that the cell which should have defined it stopped, and that
the function is the one from before, or that the cell was never run. This module can, in JupyterLab
and where nbgrader validates: `autograder.check` starts it. `autograder check` and the grading say
the same sentences.
"""

import ast
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from autograder import cell_metadata
from autograder.checking.toolbox import registry
from autograder.inside.server import describe, one_line

CALLED = re.compile(r"^check\.(\w+)\(", re.MULTILINE)
# The id of a cell that a learner was given and is not to fill in; not that of a new one.
OURS = re.compile(r"[0-9a-f]{10}|given-.+")
NOT_RUN = (
    "its cell was not run in this kernel, or is missing: run the notebook from its first cell "
    "(Run ▸ Run All Above Selected Cell)"
)


class Missing:
    """Stands for an answer that is not there, so that its check can say why."""


@dataclass
class Noted:
    """What happened in this kernel so far, by name of an exercise."""

    stopped: dict[str, str] = field(default_factory=dict)  # why its cell defined nothing, last time
    accepted: set[str] = field(default_factory=set)  # by its check, as it stands now
    defined: set[str] = field(default_factory=set)  # names that a cell was to define
    absent: dict[str, str] = field(default_factory=dict)  # variable → the exercise it waits for
    # name → the names that the cells read which define or set it
    reads: dict[str, dict[str, None]] = field(default_factory=dict)  # in their order
    ran: set[str] = field(default_factory=set)  # the ids of cells
    cell: Any = None  # the one that runs: IPython's ExecutionInfo
    before: dict[str, Any] = field(default_factory=dict)  # what the names that it defines were


noted = Noted()


def start() -> None:
    """Watch the cells of the kernel that imports this; nothing happens outside of a kernel."""
    if "ipykernel" not in sys.modules:
        return
    from IPython import get_ipython

    shell: Any = get_ipython()
    if shell is not None:
        shell.events.register("pre_run_cell", lambda info: _before(shell, info))
        shell.events.register("post_run_cell", lambda result: _after(shell, result))
        shell.set_custom_exc((Exception,), _show)


def why_not_there(name: str, answer: object) -> str:
    """Why an exercise has no answer that could be judged, or ''."""
    if name in noted.stopped:
        return noted.stopped[name]
    if isinstance(answer, Missing):
        ran = f"exercise-{name.replace('_', '-')}" in noted.ran
        return cell_metadata.defines_another(name) if ran else NOT_RUN
    return ""


def judged(name: str, is_right: bool) -> None:
    """Note what a check said of an answer."""
    (noted.accepted.add if is_right else noted.accepted.discard)(name)


def _before(shell: Any, info: Any) -> None:
    """Note what the cell might define, and let a check be called whose answer is not there."""
    noted.cell = info
    names = cell_metadata.DEFINED.findall(info.raw_cell)
    noted.before = {name: shell.user_ns.get(name) for name in names}
    read, made = _read_and_made(info.raw_cell)
    for name in made:
        noted.reads.setdefault(name, {}).update(dict.fromkeys(read))
    for name in CALLED.findall(info.raw_cell):
        shell.user_ns.setdefault(name, Missing())


def _after(shell: Any, result: Any) -> None:
    """Note whether the cell defined what it was to define."""
    noted.ran.add(result.info.cell_id)
    error = result.error_before_exec or result.error_in_exec
    for name, before in noted.before.items():
        noted.accepted.discard(name)
        noted.stopped.pop(name, None)
        why = cell_metadata.magic(noted.cell.raw_cell)
        if error is not None and not why:
            why = f"its cell stops with {one_line(describe(error, noted.cell.raw_cell))}"
        if why and shell.user_ns.get(name) is before:
            noted.stopped[name] = why
    noted.defined |= noted.before.keys()
    for name in [name for name, value in shell.user_ns.items() if isinstance(value, Missing)]:
        del shell.user_ns[name]


def _show(shell: Any, kind: Any, error: Any, trace: Any, tb_offset: Any = None) -> list[str]:
    """Show an exception; where a cell waits for an answer, a sentence instead."""
    name = _waits_for(shell)
    if name:
        said = [f"This cell waits for {name}, which its check has not accepted yet."]
        error._render_traceback_ = lambda: said
    ran = not isinstance(error, SyntaxError)  # else the line says all, without IPython's own frames
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset, running_compiled_code=ran)
    return []


def _waits_for(shell: Any) -> str:
    """The answer without which the lesson's cell that runs cannot work, or ''."""
    if noted.cell is None or not OURS.fullmatch(noted.cell.cell_id or ""):
        return ""
    read, made = _read_and_made(noted.cell.raw_cell)
    found = _needs(shell, read, set())
    if found:  # and so do all cells that use what this one does not make
        noted.absent |= dict.fromkeys(made - shell.user_ns.keys(), found)
    return found


def _read_and_made(source: str) -> tuple[list[str], set[str]]:
    """The names that a cell reads, in their order, and those that it sets or defines."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return [], set()
    names = [node for node in nodes if isinstance(node, ast.Name)]
    read = dict.fromkeys(node.id for node in names if isinstance(node.ctx, ast.Load))
    made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return list(read), made | set(cell_metadata.DEFINED.findall(source))


def _needs(shell: Any, names: Iterable[str], seen: set[str]) -> str:
    """The first open answer among these names and what went into them, or ''.

    seen  names that need not be followed again
    """
    for name in names:
        if name in seen:
            continue
        seen.add(name)
        wanted = name if name in shell.user_ns else noted.absent.get(name, name)
        if _is_open(shell, wanted):
            return wanted
        read = () if registry.is_exercise(name) else noted.reads.get(name, ())
        if found := _needs(shell, read, seen):
            return found
    return ""


def _is_open(shell: Any, name: str) -> bool:
    """Whether a name is that of an exercise whose answer is missing, or not accepted so far."""
    if name in noted.accepted or not registry.is_exercise(name):
        return False
    return name not in shell.user_ns or name in noted.defined
