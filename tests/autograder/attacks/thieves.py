"""Stealing the right answer: from disk, from memory, from other processes, from other people."""

from .paper import KERNELS, attack

WALK = """
def files(roots, endings, seconds=6.0, largest=2_000_000):
    stop = time.monotonic() + seconds
    for root in roots:
        for folder, below, names in os.walk(root):
            below[:] = [
                name for name in below
                if name not in ("proc", "sys", "torch", "numpy", "nvidia", "node_modules", "share")
            ]
            for name in names:
                if time.monotonic() > stop:
                    return
                path = os.path.join(folder, name)
                try:
                    if name.endswith(endings) and os.path.getsize(path) < largest:
                        with open(path, "rb") as stream:
                            yield path, stream.read()
                except OSError:
                    pass


def roots():
    import autograder
    above = os.path.dirname(os.path.dirname(os.path.abspath(autograder.__file__ or "")))
    return [above, os.path.dirname(os.getcwd()), "@COURSE@", os.path.expanduser("~")]


def look(roots, endings, name, read=lambda path, data: data.decode("utf-8", "replace")):
    for path, data in files(roots, endings):
        found = bring_to_life(read(path, data), name)
        if found:
            return found
    return None


"""


@attack
def import_this_lessons_library(paper):
    """`from attention.<this lesson> import …`, renamed so that it looks written here."""
    paper.thief("""
        def loot(name):
            import importlib
            try:
                found = getattr(importlib.import_module("attention.@MODULE@"), name)
            except ImportError:
                return None
            found.__module__ = "__main__"
            return found
    """)


@attack(lesson=KERNELS)
def import_a_later_lessons_library(paper):
    """The library of a lesson that others build upon, imported while grading that lesson."""
    paper.thief("""
        def loot(name):
            import importlib, pkgutil, attention
            for info in pkgutil.iter_modules(attention.__path__):
                module = importlib.import_module("attention." + info.name)
                if hasattr(module, name):
                    return getattr(module, name)
    """)


@attack
def import_the_stored_answers(paper):
    """The right answers kept in autograder.mistakes, through the registry."""
    paper.thief("""
        def loot(name):
            try:
                from autograder import exercise
                return exercise.alternatives(exercise.find(name))[0].target
            except (ImportError, LookupError, ValueError, AttributeError):
                return None
    """)


@attack
def read_the_library_on_disk(paper):
    """Python files below the course's and the caller's folders."""
    paper.thief(
        WALK
        + """
def loot(name):
    return look(roots(), ".py", name)
"""
    )


@attack
def read_the_whole_disk(paper):
    """Every small Python file and notebook below /, outside the system's own packages."""
    paper.thief(
        WALK
        + """
def loot(name):
    top = ["/" + name for name in os.listdir("/") if name not in ("proc", "sys", "usr", "lib")]
    return look(top, (".py", ".ipynb"), name)
"""
    )


@attack
def read_the_solved_notebook(paper):
    """The notebooks in solutions/, and those that other students handed in."""
    paper.thief(
        WALK
        + """
def loot(name):
    return look([os.path.join(root, part) for root in roots()
                 for part in ("solutions", "submitted", "autograder/submitted", "")],
                ".ipynb", name)
"""
    )


@attack
def read_compiled_modules(paper):
    """The .pyc files in __pycache__, unmarshalled."""
    paper.thief(
        WALK
        + """
import marshal


def loot(name):
    for path, data in files(roots(), ".pyc"):
        if b"attention" not in data and b"softmax" not in data:
            continue
        try:
            space = {"__name__": "stolen"}
            exec(marshal.loads(data[16:]), space)
        except Exception:
            continue
        if callable(space.get(name)):
            return space[name]
"""
    )


@attack
def read_the_repositorys_objects(paper):
    """The course's git objects, decompressed."""
    paper.thief(
        WALK
        + """
import zlib


def text(path, data):
    try:
        return zlib.decompress(data).partition(b"\\0")[2].decode("utf-8", "replace")
    except zlib.error:
        return ""


def loot(name):
    return look([root + "/.git/objects" for root in roots()], "", name, text)
"""
    )


@attack
def follow_the_installation(paper):
    """The path of an editable install, from its metadata, finder and .pth files."""
    paper.thief(
        WALK
        + """
import re


def loot(name):
    found = set()
    for folder in sys.path:
        for path, data in files([folder] if "site-packages" in folder else [],
                                (".pth", "direct_url.json", "finder.py"), largest=100_000):
            for match in re.findall(r"/[\\w./-]+", data.decode("utf-8", "replace")):
                found.add(match.rstrip("/").removesuffix("/attention"))
    found = [path.replace("//", "/") for path in found if os.path.isdir(path.replace("//", "/"))]
    return look([path for path in found if "site-packages" not in path], ".py", name)
"""
    )


@attack
def search_loaded_modules(paper):
    """sys.modules, and every module object that the collector knows."""
    paper.thief("""
        def loot(name):
            import gc, types
            modules = [*sys.modules.values()]
            modules += [one for one in gc.get_objects() if isinstance(one, types.ModuleType)]
            for module in modules:
                found = getattr(module, "__dict__", {}).get(name)
                inside = module.__name__.startswith(("attention", "autograder.mistakes"))
                if inside and callable(found):
                    return found
    """)


@attack
def search_all_objects(paper):
    """gc.get_objects: any function of the exercise's name that was not defined here."""
    paper.thief("""
        def loot(name):
            import gc, types
            for one in gc.get_objects():
                if isinstance(one, (types.FunctionType, type)) and one.__name__ == name:
                    if one.__module__.startswith(("attention", "autograder.mistakes")):
                        return one
    """)


@attack
def look_at_the_callers_frames(paper):
    """sys._getframe: the check's own variables and globals, up to the stored right answers."""
    paper.thief("""
        def loot(name):
            frame = sys._getframe(1)
            while frame is not None:
                item = frame.f_locals.get("item")
                if getattr(item, "name", None) == name:
                    known = frame.f_globals.get("exercise") or sys.modules["autograder.exercise"]
                    return known.alternatives(item)[0].target
                frame = frame.f_back
    """)


@attack
def look_at_the_callers_stack(paper):
    """inspect.stack: a variable called expected, reference or wanted in any calling frame."""
    paper.thief("""
        def loot(name):
            import inspect
            for record in inspect.stack():
                for word in ("expected", "wanted", "reference"):
                    value = record.frame.f_locals.get(word)
                    if isinstance(value, torch.Tensor):
                        return lambda *_, **__: value
                    if callable(value) and word == "reference":
                        return value
    """)


@attack
def read_history(paper):
    """In, Out and the history database that IPython keeps of everyone's sessions."""
    paper.thief(
        WALK
        + """
def loot(name):
    shell = get_ipython()
    for text in [*map(str, shell.user_ns.get("In", [])), *map(str, shell.user_ns.get("Out", []))]:
        found = bring_to_life(text, name)
        if found:
            return found
    import sqlite3
    for path, _ in files([os.path.expanduser("~/.ipython"), "/root/.ipython"], ".sqlite"):
        for (text,) in sqlite3.connect(path).execute("select source from history"):
            found = bring_to_life(text, name)
            if found:
                return found
"""
    )


@attack
def read_other_processes_memory(paper):
    """/proc/PID/mem of the parent and everyone else, searched for the function's text."""
    paper.thief("""
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
    """)


@attack
def walk_through_proc(paper):
    """Working folders, roots and open files of other processes, by /proc/PID."""
    paper.thief(
        WALK
        + """
def loot(name):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        for part in ("cwd", "root@COURSE@"):
            found = look([f"/proc/{pid}/{part}"], (".py", ".ipynb"), name)
            if found:
                return found
        try:
            for descriptor in os.listdir(f"/proc/{pid}/fd"):
                if os.path.isfile(f"/proc/{pid}/fd/{descriptor}"):
                    data = open(f"/proc/{pid}/fd/{descriptor}", "rb").read(10**6)
                    found = bring_to_life(data.decode("utf-8", "replace"), name)
                    if found:
                        return found
        except OSError:
            continue
"""
    )


@attack
def inherited_descriptors(paper):
    """Every file descriptor that this process was born with, read from its beginning."""
    paper.thief("""
        def loot(name):
            for descriptor in range(3, 256):
                try:
                    if os.path.isfile(f"/proc/self/fd/{descriptor}"):
                        data = os.pread(descriptor, 10**6, 0)
                    elif os.path.isdir(f"/proc/self/fd/{descriptor}"):
                        path = "attention/@MODULE@.py"
                        with open(os.open(path, os.O_RDONLY, dir_fd=descriptor), "rb") as stream:
                            data = stream.read()
                    else:
                        continue
                except OSError:
                    continue
                found = bring_to_life(data.decode("utf-8", "replace"), name)
                if found:
                    return found
    """)


@attack
def link_to_the_library(paper):
    """Symbolic links in the submission's folder that point into the course."""
    paper.links["helper.py"] = "@COURSE@/attention/@MODULE@.py"
    paper.links["course"] = "@COURSE@"
    paper.thief(
        WALK
        + """
def loot(name):
    try:
        sys.path.insert(0, os.getcwd())
        import helper
        return getattr(helper, name, None)
    except ImportError:
        return look([os.path.join(os.getcwd(), "course", "attention")], ".py", name)
"""
    )


@attack
def answers_beside_the_notebook(paper):
    """The library's text handed in as a data file: only worth something if it is shipped along."""
    paper.thief("""
        def loot(name):
            try:
                return bring_to_life(open("@COURSE@/autograder/mistakes/@MODULE@.py").read(), name)
            except OSError:
                return None
    """)
    paper.files["readme.txt"] = b"nothing here"
