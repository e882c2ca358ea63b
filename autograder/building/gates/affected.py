"""Which parts of a notebook depend on a name: verify runs only the checks that may be affected."""

import functools
import symtable
from collections.abc import Iterable

from nbformat import NotebookNode


def affected_names(notebook: NotebookNode, names: Iterable[str]) -> set[str]:
    """The names whose values may differ if those of ``names`` do: by who uses whom in the cells."""
    affected = set(names)
    cells = [flow(cell.source) for cell in notebook.cells if cell.cell_type == "code"]
    size = -1
    while size != len(affected):
        size = len(affected)
        for used, defined in cells:
            if used & affected:
                affected |= defined
    return affected


@functools.lru_cache(maxsize=1000)
def flow(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """The global names that a cell uses, and those that it assigns; kept, for each mistake asks."""
    try:
        module = symtable.symtable(source, "cell", "exec")
    except SyntaxError:
        return frozenset(), frozenset()
    symbols = module.get_symbols()
    used = {one.get_name() for one in symbols if one.is_referenced()}
    assigned = {one.get_name() for one in symbols if one.is_assigned()}
    inner = list(module.get_children())
    for table in inner:  # grows while it is walked
        inner += table.get_children()
        used |= {one.get_name() for one in table.get_symbols() if one.is_global()}
    return frozenset(used), frozenset(assigned)
