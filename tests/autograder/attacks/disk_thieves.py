"""Stealing the right answer from disk: the course, its history, its solutions, other people."""

from .paper import attack, attacks

THIEVES = {
    # Python files below the course's and the caller's folders.
    "read_the_library_on_disk": """
        def loot(name):
            return look(roots(), ".py", name)
    """,
    # Every small Python file and notebook below /, outside the system's own packages.
    "read_the_whole_disk": """
        def loot(name):
            top = {*os.listdir("/")} - {"proc", "sys", "usr", "lib"}
            return look(["/" + name for name in top], (".py", ".ipynb"), name)
    """,
    # The notebooks in solutions/, and those that other students handed in.
    "read_the_solved_notebook": """
        def loot(name):
            return look([os.path.join(root, part) for root in roots()
                         for part in ("solutions", "submitted", "class/submitted", "")],
                        ".ipynb", name)
    """,
    # The .pyc files in __pycache__, unmarshalled.
    "read_compiled_modules": """
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
    """,
    # The course's git objects, decompressed.
    "read_the_repositorys_objects": """
        import zlib

        def text(path, data):
            try:
                return zlib.decompress(data).partition(b"\\0")[2].decode("utf-8", "replace")
            except zlib.error:
                return ""

        def loot(name):
            return look([root + "/.git/objects" for root in roots()], "", name, text)
    """,
    # The path of an editable install, from its metadata, finder and .pth files.
    "follow_the_installation": """
        import re

        def loot(name):
            found = set()
            for folder in sys.path:
                for path, data in files([folder] if "site-packages" in folder else [],
                                        (".pth", "direct_url.json", "finder.py"), largest=100_000):
                    for match in re.findall(r"/[\\w./-]+", data.decode("utf-8", "replace")):
                        found.add(match.rstrip("/").removesuffix("/attention").replace("//", "/"))
            found = [one for one in found if os.path.isdir(one) and "site-packages" not in one]
            return look(found, ".py", name)
    """,
    # In, Out and the history database that IPython keeps of everyone's sessions.
    "read_history": """
        import sqlite3

        def history():
            space = get_ipython().user_ns
            yield from map(str, [one for where in ("In", "Out") for one in space.get(where, [])])
            for path, _ in files([os.path.expanduser("~/.ipython"), "/root/.ipython"], ".sqlite"):
                yield from (text for (text,) in
                            sqlite3.connect(path).execute("select source from history"))

        def loot(name):
            return first_of(history(), name)
    """,
    # The library's text, at its place in the course: worth something only if it is shipped along.
    "answers_beside_the_notebook": """
        def loot(name):
            try:
                return bring_to_life(open("@COURSE@/autograder/mistakes/@MODULE@.py").read(), name)
            except OSError:
                return None
    """,
}
attacks(__name__, "thief", THIEVES)


@attack
def link_to_the_library(paper):
    """Symbolic links in the submission's folder that point into the course."""
    paper.links["helper.py"] = "@COURSE@/attention/@MODULE@.py"
    paper.links["course"] = "@COURSE@"
    paper.thief("""
        def loot(name):
            try:
                sys.path.insert(0, os.getcwd())
                import helper
                return getattr(helper, name, None)
            except ImportError:
                return look([os.path.join(os.getcwd(), "course", "attention")], ".py", name)
    """)
