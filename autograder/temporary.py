"""Temporary folders that survive no run: what a killed process left is removed by the next one."""

import contextlib
import errno
import fcntl
import functools
import multiprocessing.util
import os
import re
import shutil
import stat
import tempfile
import time
from pathlib import Path

FULL = {errno.ENOSPC, errno.EDQUOT}  # a disk has no room
PREFIX = "autograder-"
LONGEST_FOR_SOCKETS = 70  # bytes of a path; a socket's, with what is added to it, has 107


def place(error: OSError) -> str:
    """Which file or folder a disk's error is about, or ''; of a file written aside, its folder."""
    path = Path(str(error.filename or ""))
    aside = path.suffix == ".tmp" and path.name.startswith(tempfile.gettempprefix())
    return str(path.parent if aside else path) if error.filename else ""


class Temporary:
    """A folder that is removed by ``close``, at the end of ``with``, or by a later ``sweep``.

    It is locked as long as its process lives. So no number of a process decides what is removed:
    those are given again, and in containers that share a folder they say nothing.

    folder  where to make it (default: the system's temporary folder)
    """

    def __init__(self, folder: Path | str | None = None, prefix: str = PREFIX) -> None:
        folder = Path(folder or tempfile.gettempdir())
        sweep(folder, prefix)
        self._owner, lock = os.getpid(), None
        while lock is None:  # somebody may sweep between the making and the locking
            self.path = Path(tempfile.mkdtemp(prefix=f"{prefix}{self._owner}-", dir=folder))
            try:
                lock = _locked(self.path)
            except OSError:  # no descriptor is left, say, or this disk knows no locks
                self.path.rmdir()
                raise
        self._lock = lock

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder; a forked process leaves it to its parent."""
        if self._owner == os.getpid():
            self._owner = 0
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)


def sweep(folder: Path | str | None = None, prefix: str = PREFIX, patience: float = 0.0) -> None:
    """Remove what killed processes of this user left in ``folder``, and nothing else.

    ``patience`` is for how many seconds in all what cannot be removed is tried again: a process
    that is just ending may still write there.
    """
    folder, end = Path(folder or tempfile.gettempdir()), time.monotonic() + patience
    ours = re.compile(rf"{re.escape(prefix)}[0-9]{{1,10}}-[a-z0-9_]{{8}}")
    with contextlib.suppress(OSError):
        for name in filter(ours.fullmatch, os.listdir(folder)):
            with contextlib.suppress(OSError):
                _remove(folder / name, end)


def _remove(old: Path, end: float) -> None:
    about = old.lstat()
    if stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid():
        lock = _locked(old)
        if lock is not None:
            shutil.rmtree(old, ignore_errors=True)
            while old.exists() and time.monotonic() < end:
                time.sleep(0.02)
                shutil.rmtree(old, ignore_errors=True)
            os.close(lock)


def _locked(path: Path) -> int | None:
    """A descriptor that locks a folder until it is closed; None if it is gone or another's.

    Raises OSError where it cannot be locked at all.
    """
    with contextlib.suppress(BlockingIOError, FileNotFoundError), contextlib.ExitStack() as undo:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        undo.callback(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.lstat(path)):
            undo.pop_all()
            return lock
    return None


@functools.cache
def for_processes() -> None:
    """Let Python's multiprocessing keep its sockets in such a folder; a killed process leaves them.

    To be called before the first process is started. Where the temporary folder's own path is so
    long that a socket's would be too long, they stay where they are.
    """
    aside = Temporary()
    # After multiprocessing's own, which is at -100 and complains of what is gone.
    multiprocessing.util.Finalize(None, aside.close, exitpriority=-200)
    if len(os.fsencode(aside.path)) <= LONGEST_FOR_SOCKETS:
        before, tempfile.tempdir = tempfile.tempdir, str(aside.path)
        try:
            multiprocessing.util.get_temp_dir()
        finally:
            tempfile.tempdir = before
