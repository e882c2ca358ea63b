"""The parent of the students' processes: imports everything once, then forks one a submission.

Runs inside the sandbox as ``python -m autograder.inside.zygote CONTROL_FD OPTIONS``. The grader
sends one command at a time over the control socket; a student's process never has it.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any

from autograder.inside import cpu_time, isolation, server
from autograder.inside.limits import NONE, OUT_OF_MEMORY, OWN, Limits, out_of_memory
from autograder.inside.messages.codec import Channel

WATCH_SECONDS = 0.1
DYING_SECONDS = 10.0  # between a process's last word and its end


class Zygote:
    """Forks a student's process on command, watches what it uses, and kills it on command."""

    def __init__(self, control: socket.socket, options: dict[str, Any]) -> None:
        self._control = control
        self._limits = Limits(**options["limits"])
        self._walls = options["walls"]
        self._shell = server.shell()
        for name in options["modules"]:
            with contextlib.suppress(ImportError):  # the notebook says what it cannot import
                importlib.import_module(name)
        # What is imported before a notebook starts is not counted as the notebook's.
        self._most_memory = self._limits.memory_bytes + isolation.in_use()
        self._child: int | None = None
        self._verdict, self._meter = "", cpu_time.Meter()

    def serve(self) -> None:
        """Obey commands until the grader hangs up."""
        self._control.send(json.dumps({"ready": os.getpid()}).encode())
        while True:
            watched = self._child and self._walls != NONE
            waiting = WATCH_SECONDS if watched else None
            asked = select.select([self._control], [], [], waiting)[0]
            if watched:  # however often it is asked
                self._watch()
            if not asked:
                continue
            data, descriptors, _, _ = socket.recv_fds(self._control, 4096, 2)
            if not data:
                self._kill()
                return
            if data == b"start":
                reply = self._start(*descriptors)
            elif data == b"look":
                reply = self._look()
            else:
                reply = self._stop(patience=DYING_SECONDS if data == b"bury" else 0)
            self._control.send(json.dumps(reply).encode())

    def _start(self, descriptor: int, group: int | None = None) -> dict[str, Any]:
        self._verdict, self._meter = "", cpu_time.Meter()
        try:
            self._child = isolation.fork(
                self._student, descriptor, group, self._limits, self._walls
            )
        except OSError as error:
            return {"refused": str(error)}
        finally:
            os.close(descriptor)
            if group is not None:
                os.close(group)
        return {"started": self._child}

    def _student(self, descriptor: int) -> None:
        connection = socket.socket(fileno=descriptor)
        channel = Channel(connection, limit=2**31, trusted=True)
        try:
            server.Server(channel, self._shell, self._limits.output_chars).serve()
        except (MemoryError, RuntimeError) as error:
            if out_of_memory(error):
                os._exit(OUT_OF_MEMORY)
            raise

    def _stop(self, patience: float) -> dict[str, Any]:
        deadline = time.monotonic() + patience
        while self._child and time.monotonic() < deadline and not _ended(self._child):
            time.sleep(0.005)
        status = self._kill()
        return {"status": status, "verdict": self._verdict}

    def _kill(self) -> int | None:
        """End the student's process and, with it, its namespace; return how it had ended."""
        if self._child is None:
            return None
        ended, status = os.waitpid(self._child, os.WNOHANG)
        if not ended:
            isolation.kill(self._child)
            os.waitpid(self._child, 0)
        self._child = None
        return os.waitstatus_to_exitcode(status) if ended else None

    def _look(self) -> dict[str, Any]:
        """How much processor time the student's processes have had, and whether they want more."""
        if self._walls == NONE:  # all of the machine's are in sight
            seen = cpu_time.of_group(self._child or 0)
        else:
            seen = isolation.students(os.getpid())
        wants = self._meter.look(seen)
        return {"busy": self._meter.seconds, "awake": wants or not seen}

    def _watch(self) -> None:
        memory, processes = isolation.usage(os.getpid(), self._most_memory)
        if memory > self._most_memory:
            self._verdict = self._limits.exceeded("memory_bytes")
        elif processes > self._limits.processes:
            self._verdict = self._limits.exceeded("processes")
        if self._verdict and self._child is not None:
            isolation.kill(self._child)


def _ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def main(control_fd: str, options: str) -> None:
    """Import what notebooks import, then serve."""
    settings, control = json.loads(options), socket.socket(fileno=int(control_fd))
    if settings["walls"] != NONE:
        isolation.drop_root()
    else:  # what it imports may write into the grader's folder, which nobody would then remove
        isolation.end_with_parent()
        if select.select([control], [], [], 0)[0]:  # nothing is said before it is ready: hung up
            return
    if settings["walls"] == OWN:
        isolation.adopt_orphans()
    isolation.hide_editable_installs()
    gc.disable()  # imports leave little garbage: to look for it took a sixth of the start
    import matplotlib.pyplot  # noqa: F401
    import numpy  # noqa: F401
    import safetensors.torch  # noqa: F401
    import torch

    torch.set_num_threads(1)
    zygote = Zygote(control, settings)
    gc.freeze()  # a collection in a child would copy every page it shares
    gc.enable()
    if settings["walls"] == NONE:
        isolation.end_with_parent(0)  # from here on it sees the end itself, and ends the student
    zygote.serve()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the grader's to handle
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # whatever the grader was started with
    main(*sys.argv[1:])
