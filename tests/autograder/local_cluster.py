"""A Dask cluster of real processes on this machine: a scheduler and its workers."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Dask looks a hundred times a second where its worker is, which is of use to nobody here.
NO_PROFILE = {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"}


@contextlib.contextmanager
def local_cluster(workers=2):
    """Start a scheduler and its workers; yields (address, the workers' processes)."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        where = Path(folder) / "scheduler.json"
        stack.enter_context(
            _started("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", where)
        )
        address = _address(where)
        worker = ("worker", address, "--nthreads", "1", "--no-nanny")
        yield address, [stack.enter_context(_started(*worker)) for _ in range(workers)]


@contextlib.contextmanager
def _started(*arguments):
    """A process of Dask's, killed at the end."""
    command = [sys.executable, "-m", "dask", *map(str, arguments), "--no-dashboard"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd="/", env={**os.environ, **NO_PROFILE}, **quiet)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _address(path):
    for _ in range(3000):
        with contextlib.suppress(OSError, ValueError):
            return json.loads(path.read_text())["address"]
        time.sleep(0.1)
    raise TimeoutError("the scheduler did not start")
