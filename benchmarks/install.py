"""What a student's first installation costs: time, disk, and whether the copy then works offline.

    python -m benchmarks.install [LESSON]

Releases the lesson (00), makes an empty environment, installs the copy into it as its README says
and checks a solved notebook there, on Linux without a network. The package registries must be in
reach; how fast they are is part of the time.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from autograder import ROOT, lessons
from autograder.building.lesson import find
from autograder.releasing.write import INSIDE, release


def main(name: str = "00") -> int:
    """Install and check; returns the exit status of the check."""
    slug = find([name])[0].stem
    with tempfile.TemporaryDirectory() as place:
        archive, folder = Path(place, "course.zip"), Path(place, INSIDE)
        release([slug], archive)
        shutil.unpack_archive(archive, place)
        programs = folder / ".venv" / "bin"
        _timed("an empty environment", [sys.executable, "-m", "venv", folder / ".venv"])
        install = [programs / "python", "-m", "pip", "install", "-q"]
        _timed("pip install", [*install, "-c", "constraints.txt", "-e", "."], folder)
        print(f"{slug}: zip {_mib(archive):.1f} MiB, environment {_mib(folder / '.venv'):.0f} MiB")
        solved = lessons.notebook(ROOT, "solutions", slug)
        offline = ["unshare", "--net", "--map-root-user"] if shutil.which("unshare") else []
        check = [*offline, programs / "autograder", "check", solved]
        return _timed("autograder check, offline" if offline else "autograder check", check, folder)


def _timed(what: str, command: list[Path | str], folder: Path | None = None) -> int:
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False)
    print(f"{what}: {time.perf_counter() - start:.0f} s, exit status {done.returncode}", flush=True)
    return done.returncode


def _mib(path: Path) -> float:
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(one.lstat().st_size for one in files) / 2**20


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
