"""Stealing the right answer from memory: modules, objects, frames, processes, descriptors."""

from .paper import DECODING, attack, attacks

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


@attack(lesson=DECODING)
def wrap_what_is_handed_out(paper):
    """An attention with a cache, handed out for demonstrations, wrapped into the exercise."""
    (cell,) = (one for one in paper.answers if "class CachedAttention" in one.source)
    cell.source = READY_MADE
