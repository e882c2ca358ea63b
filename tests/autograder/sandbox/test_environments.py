"""Python environments of many layouts: the sandbox starts in each, or a sentence says what to do.

Each is made of links to this Python, or of a copy, and of one small module called ``wanted``.
"""

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from autograder import ROOT
from autograder.sandbox import bubblewrap, isolation_check
from tests.needs import needs

pytestmark = needs("bubblewrap")

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
REAL = Path(sys.base_prefix).resolve() / "bin" / VERSION
SITE = Path("lib") / VERSION / "site-packages"
# Run by an environment's Python: what a module says that is imported in its sandbox, or why not.
IMPORT = """
import subprocess, sys
sys.path.append(sys.argv[1])
from autograder.sandbox import bubblewrap, isolation_check
from autograder.sandbox.bubblewrap import SandboxRefused
try:
    isolation_check.prove(())
    program = [sys.executable, "-s", "-c", "import json, wanted; print(wanted.SAYS)"]
    done = subprocess.run(bubblewrap.command("/usr", program), capture_output=True, text=True)
    print(done.stdout or isolation_check.does_not_start(done.stderr))
except SandboxRefused as error:
    print(error)
"""


def venv(folder, home, system=False):
    """An environment as ``home``/python -m venv makes it, without packages."""
    (folder / "bin").mkdir(parents=True)
    (folder / SITE).mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(home / VERSION)
    (folder / "pyvenv.cfg").write_text(
        f"home = {home}\ninclude-system-site-packages = {str(system).lower()}\n"
    )
    return folder


def packages(folder):
    """A folder with the one package."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "wanted.py").write_text("SAYS = 'I am here'\n")
    return folder


def linked(folder, target):
    """A link in a folder of its own."""
    folder.mkdir(parents=True)
    (folder / VERSION).symlink_to(target)
    return folder


def said(environment):
    """What is printed when ``wanted`` is imported in the sandbox of an environment."""
    python = environment / "bin" / "python"
    done = subprocess.run(
        [python, "-c", IMPORT, ROOT], capture_output=True, text=True, cwd="/", check=False
    )
    return (done.stdout + done.stderr).strip()


def two_links_in_a_row(folder):
    second = linked(folder / "b", REAL)
    made = venv(folder / "env", linked(folder / "a", second / VERSION))
    packages(made / SITE)
    return made


def relative_links_through_a_folder_that_is_a_link(folder):
    linked(folder / "real" / "b", REAL)
    linked(folder / "real" / "a", f"../b/{VERSION}")
    (folder / "home").symlink_to("real")
    made = venv(folder / "home" / "env", folder / "home" / "a")
    packages(made / SITE)
    return made


def site_packages_that_are_a_link(folder):
    made = venv(folder / "env", REAL.parent)
    (made / SITE).rmdir()
    (folder / "link").symlink_to(packages(folder / "data"))
    (made / SITE).symlink_to(folder / "link")
    return made


def packages_by_pth(folder):
    made = venv(folder / "env", REAL.parent)
    other = packages(folder / "other" / SITE)
    (made / SITE / "other.pth").write_text(f"import sys\n{other}\n")
    return made


def conda(folder):
    """A Python that was moved into a prefix of its own, as conda moves one: binary and all."""
    made, library = folder / "conda", Path(sysconfig.get_path("stdlib"))
    skipped = shutil.ignore_patterns(
        "site-packages", "test", "tests", "idlelib", "tkinter", "ensurepip", "config-*", "*.pyc"
    )
    shutil.copytree(library, made / "lib" / VERSION, ignore=skipped, symlinks=True)
    for shared in REAL.parents[1].glob("lib/libpython*.so*"):
        shutil.copy(shared, made / "lib")
    (made / "bin").mkdir()
    data, own, new = REAL.read_bytes(), bytes(REAL.parents[1] / "lib"), bytes(made / "lib")
    if len(new) <= len(own):  # else the loader finds its library by itself
        data = data.replace(own + b"\0", new.ljust(len(own) + 1, b"\0"))
    (made / "bin" / VERSION).write_bytes(data)
    (made / "bin" / VERSION).chmod(0o755)
    (made / "bin" / "python").symlink_to(VERSION)
    packages(made / SITE)
    return made


def a_venv_with_the_packages_of_its_conda(folder):
    return venv(folder / "env", conda(folder) / "bin", system=True)


@pytest.mark.parametrize(
    "make",
    [
        two_links_in_a_row,
        relative_links_through_a_folder_that_is_a_link,
        site_packages_that_are_a_link,
        packages_by_pth,
        a_venv_with_the_packages_of_its_conda,
    ],
)
def test_the_sandbox_starts_with_its_packages_in(make):
    with tempfile.TemporaryDirectory() as folder:  # its name is short: see conda
        assert said(make(Path(folder))) == "I am here"


def test_a_folder_of_another_name_stays_out_of_sight(tmp_path):
    made, other = venv(tmp_path / "env", REAL.parent), packages(tmp_path / "projects")
    (made / SITE / "other.pth").write_text(f"{other}\n")
    told = said(made)
    assert told.startswith(
        "the sandbox does not start: ModuleNotFoundError: No module named 'wanted'"
    )
    assert f"install all of it into {made} itself" in told and "\n" not in told


def test_a_program_that_is_not_seen_is_named(monkeypatch, tmp_path):
    program = tmp_path / "python"
    program.symlink_to(REAL)
    done = subprocess.run(
        bubblewrap.command("/usr", [str(program)]), capture_output=True, text=True, check=False
    )
    told = isolation_check.does_not_start(done.stderr)
    assert f"execvp {program}: No such file" in told and "venv" in told
