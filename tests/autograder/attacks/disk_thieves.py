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
