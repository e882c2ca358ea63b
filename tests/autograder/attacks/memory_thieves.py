"""Stealing the right answer from memory: modules, objects, frames, processes, descriptors."""

from .paper import DECODING, KERNELS, attack, attacks

READY_MADE = """
from torch import nn

from attention.provided.models.key_value_cache import _PastAttention


class CachedAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.W_q, self.W_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.W_v, self.W_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.past = [_PastAttention(self)]

    def forward(self, x):
        return self.past[0](x, x, x)
"""

THIEVES = {
    # `from attention.<this lesson> import …`, renamed so that it looks written here.
    "import_this_lessons_library": """
        def loot(name):
            import importlib
            try:
                found = getattr(importlib.import_module("attention.@MODULE@"), name)
            except ImportError:
                return None
            found.__module__ = "__main__"
            return found
    """,
    # The right answers kept in autograder.mistakes, through the registry.
    "import_the_stored_answers": """
        def loot(name):
            try:
                from autograder.checking.toolbox import registry
                return registry.alternatives(registry.find(name))[0].target
            except (ImportError, LookupError, ValueError, AttributeError):
                return None
    """,
    # gc.get_objects: any function of the exercise's name that was not defined here.
    "search_all_objects": """
        def loot(name):
            import gc, types
            for one in gc.get_objects():
                if isinstance(one, (types.FunctionType, type)) and one.__name__ == name:
                    if one.__module__.startswith(("attention", "autograder.mistakes")):
                        return one
    """,
    # sys._getframe: the check's own variables and globals, up to the stored right answers.
    "look_at_the_callers_frames": """
        def loot(name):
            frame = sys._getframe(1)
            while frame is not None:
                item = frame.f_locals.get("item")
                if getattr(item, "name", None) == name:
                    known = frame.f_globals.get("registry")
                    known = known or sys.modules["autograder.checking.toolbox.registry"]
                    return known.alternatives(item)[0].target
                frame = frame.f_back
    """,
    # /proc/PID/mem of the parent and everyone else, searched for the function's text.
    "read_other_processes_memory": """
        def loot(name):
            stop = time.monotonic() + 8
            wanted = ("def " + name + "(").encode()
            for pid in [os.getppid(), *filter(str.isdigit, os.listdir("/proc"))]:
                if str(pid) == str(os.getpid()):
                    continue
                try:
                    areas = [line.split() for line in open(f"/proc/{pid}/maps") if " rw-p" in line]
                    memory = open(f"/proc/{pid}/mem", "rb", 0)
                except OSError:
                    continue
                for area in areas:
                    start, end = (int(part, 16) for part in area[0].split("-"))
                    try:
                        memory.seek(start)
                        data = memory.read(min(end - start, 2**26))
                    except (OSError, ValueError, OverflowError):
                        continue
                    for piece in data.split(wanted)[1:]:
                        text = (wanted + piece[:3000]).decode("utf-8", "replace")
                        for cut in range(text.count("\\n"), 0, -1):
                            found = bring_to_life("\\n".join(text.split("\\n")[:cut]), name)
                            if found:
                                return found
                            if time.monotonic() > stop:
                                return None
    """,
    # Working folders, roots and open files of other processes, by /proc/PID.
    "walk_through_proc": """
        def open_files(pid):
            for path in glob.glob(f"/proc/{pid}/fd/*"):
                if os.path.isfile(path):
                    yield open(path, "rb").read(10**6).decode("utf-8", "replace")

        def loot(name):
            for pid in filter(str.isdigit, os.listdir("/proc")):
                places = [f"/proc/{pid}/cwd", f"/proc/{pid}/root@COURSE@"]
                found = int(pid) != os.getpid() and look(places, (".py", ".ipynb"), name)
                try:
                    found = found or first_of(open_files(pid), name)
                except OSError:
                    continue
                if found:
                    return found
    """,
    # Every file descriptor that this process was born with, read from its beginning.
    "inherited_descriptors": """
        def text_of(descriptor):
            try:
                if os.path.isdir(f"/proc/self/fd/{descriptor}"):
                    descriptor = os.open("attention/@MODULE@.py", os.O_RDONLY, dir_fd=descriptor)
                return os.pread(descriptor, 10**6, 0).decode("utf-8", "replace")
            except OSError:
                return ""

        def loot(name):
            return first_of(map(text_of, range(3, 256)), name)
    """,
}
attacks(__name__, "thief", THIEVES)

LATER = {
    # The library of a lesson that others build upon, imported while grading that lesson.
    "import_a_later_lessons_library": """
        def loot(name):
            import importlib, pkgutil, attention
            for info in pkgutil.iter_modules(attention.__path__):
                module = importlib.import_module("attention." + info.name)
                if hasattr(module, name):
                    return getattr(module, name)
    """,
}
attacks(__name__, "thief", LATER, lesson=KERNELS)


@attack(lesson=DECODING, stock=False)
def wrap_what_is_handed_out(paper):
    """An attention with a cache, handed out for demonstrations, wrapped into the exercise."""
    (cell,) = (one for one in paper.answers if "class CachedAttention" in one.source)
    cell.source = READY_MADE
