"""Grading into a PostgreSQL gradebook: a real server, started here and gone afterwards."""

import getpass
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from autograder import ROOT
from autograder.commands import cli
from autograder.grading.classroom import sample_class
from tests import needs

pytestmark = needs.needs("psycopg")
SLUG = "00_getting_started"


@pytest.fixture
def server():
    """URL of a database on a server of its own, reached by a socket in a temporary folder."""
    needs.skip_without("postgresql")
    programs = Path(needs.program("postgresql")).resolve().parent
    root = os.getuid() == 0  # the server refuses to run as root
    user = "postgres" if root else getpass.getuser()
    runuser = shutil.which("runuser") or "/usr/sbin/runuser"  # often not on a user's PATH
    run_as = [runuser, "-u", user, "--"] if root else []
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # a socket's path must be short
        if root:
            shutil.chown(folder, user)

        def run(program, *arguments):
            command = [*run_as, str(programs / program), *arguments]
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)

        data = f"{folder}/data"
        run("initdb", "--auth", "trust", "--username", "grader", "--no-sync", "-D", data)
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        # -l: without a log of its own the server would keep our pipe open
        run("pg_ctl", "start", "-w", "-D", data, "-o", options, "-l", f"{folder}/log")
        try:
            run("createdb", "-h", folder, "-U", "grader", "gradebook")
            yield f"postgresql://grader@/gradebook?host={folder}"
        finally:
            run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", data)


@pytest.mark.long
def test_scores_go_into_postgresql(server, tmp_path, capsys):
    """Scores and a second, regraded score are read back from the server; a preview writes none."""
    from nbgrader.api import Gradebook

    (tmp_path / "autograder").mkdir()
    shutil.copytree(ROOT / "solutions" / SLUG, tmp_path / "solutions" / SLUG)
    wrong = sample_class.wrong("softmax")
    sample_class.submit(sample_class.handed_in(SLUG), tmp_path, "ada", SLUG)
    sample_class.submit(sample_class.handed_in(SLUG, {"softmax": wrong}), tmp_path, "ben", SLUG)
    command = ["grade", "--course", str(tmp_path), "--db-url", server, "--workers", "1"]
    assert cli.main(command) == 0
    assert not (tmp_path / "class" / "gradebook.db").exists()

    sample_class.submit(sample_class.handed_in(SLUG), tmp_path, "ben", SLUG)
    with Gradebook(server, "attention") as book:
        before = {one.student.id: one.score for one in book.assignment_submissions(SLUG)}
    assert cli.main([*command, "--preview"]) == 0
    assert "gains: ben, 00_getting_started: 3 → 5 of 5" in capsys.readouterr().out
    with Gradebook(server, "attention") as book:
        previewed = {one.student.id: one.score for one in book.assignment_submissions(SLUG)}
    assert previewed == before
    assert cli.main(command) == 0
    with Gradebook(server, "attention") as book:
        after = {one.student.id: one.score for one in book.assignment_submissions(SLUG)}
    assert before == {"ada": 5, "ben": 3}
    assert after == {"ada": 5, "ben": 5}
