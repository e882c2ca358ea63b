"""The grader's handle on a sandbox: start students' processes in it, ask them, end them."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from typing import Any, Self

from autograder.inside.limits import (
    DEFAULT,
    NONE,
    OUT_OF_MEMORY,
    OWN,
    SHARED,
    Limits,
)
from autograder.sandbox import bubblewrap, cgroup, isolation_check, visible_files
from autograder.sandbox.bubblewrap import SandboxRefused, walls
from autograder.sandbox.clock import Allowance, Clock, readable
from autograder.sandbox.process import Ending, StudentProcess
from autograder.temporary import Temporary

START_SECONDS = 600.0  # to import PyTorch, also on a machine with a hundredth of its time left
OBEY_SECONDS = 120.0


class Sandbox:
    """A place to run the submissions of one lesson, one after the other.

    ``policy`` is 'required', 'auto' or 'off'; see ``policy.walls``. ``secrets`` are paths that are
    hidden inside, beside the repository's own. Raises SandboxRefused where one stays in sight, and
    where the temporary folder cannot take what the sandbox shows, as on a full disk.
    """

    def __init__(
        self,
        lesson: str,
        policy: str = "required",
        limits: Limits = DEFAULT,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self.limits, self._secrets = limits, secrets
        self._walls = walls(policy)
        self._temporary = _filled(lesson)
        self._folder = self._temporary.path
        self._zygote: Any = None  # a Popen, and its control socket, while it lives
        self._control: Any = None
        self._student: StudentProcess | None = None
        self._group: cgroup.ControlGroup | None = None
        try:
            self._modules = visible_files.imported_first(lesson)
            if self._walls != NONE:
                isolation_check.prove(secrets)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def kind(self) -> str:
        """What stands around students' code: 'bubblewrap', or 'none' but the limits."""
        return "none" if self._walls == NONE else "bubblewrap"

    def start(self, notebook: Allowance | None = None) -> StudentProcess:
        """Start a student's process with an empty namespace, ending the one before.

        ``notebook`` is what all processes of one notebook may take together.
        """
        notebook = notebook or Allowance(self.limits.notebook_seconds, self.limits.patience)
        self.stop()
        fresh = self._walls == SHARED or self._zygote is None
        if fresh:
            self._launch()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._leave_group()  # of a start that was refused
        self._group = cgroup.make(self.limits)
        entrance = [self._group.entrance()] if self._group else []
        try:
            answer = self._command(b"start", theirs.fileno(), *entrance)
        except SandboxRefused:
            ours.close()
            self._end_zygote()
            if fresh:
                raise
            return self.start(notebook)  # it had died since: the machine's memory was full, say
        finally:
            theirs.close()
            for descriptor in entrance:
                os.close(descriptor)
        if "refused" in answer:
            ours.close()
            if self._walls != OWN:
                raise SandboxRefused(f"a process could not be started: {answer['refused']}")
            self._walls = SHARED  # nested namespaces are refused here: a sandbox for each student
            return self.start(notebook)
        clock = Clock(self._look, notebook, self.limits.patience)
        self._student = StudentProcess(ours, self.limits, self.stop, clock)
        return self._student

    def stop(self, dying: bool = False) -> Ending:
        """End the student's process and everything it started; return why it had ended.

        ``dying`` says that it has hung up, so that its end is worth a moment's waiting for.
        """
        if self._student is None:
            return Ending()
        self._student.close()
        self._student = None
        try:
            return self._ended(dying)
        finally:
            self._leave_group()

    def _ended(self, dying: bool) -> Ending:
        try:
            ended = self._command(b"bury" if dying else b"stop")
        except (SandboxRefused, OSError):
            return Ending("the sandbox ended with it", doubtful=self._walls == OWN)
        if self._walls == SHARED:
            self._end_zygote()
        in_peace = ended["status"] == 0 and not dying  # because we hung up
        if ended["verdict"] or in_peace:
            return Ending(ended["verdict"])
        if self._group and self._group.ran_out_of_memory():
            return Ending(self.limits.exceeded("memory_bytes"))
        killed = ended["status"] == -signal.SIGKILL and self._walls == OWN  # not by itself, there
        return Ending(_describe(ended["status"]), doubtful=killed)

    def close(self) -> None:
        """End everything and remove the temporary folder."""
        if self._student is not None:
            self._student.close()
            self._student = None
        self._end_zygote()
        self._leave_group()
        self._temporary.close()

    def _leave_group(self) -> None:
        if self._group is not None:
            self._group.close()
            self._group = None

    def _launch(self) -> None:
        self._end_zygote()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        options = json.dumps(
            {"walls": self._walls, "limits": self.limits.as_dict(), "modules": self._modules}
        )
        program = [sys.executable, "-s", "-m", "autograder.inside.zygote"]
        program += [str(theirs.fileno()), options]
        home, environment = self._folder / "home", None
        if self._walls == NONE:
            environment = bubblewrap.environment(self._folder / "course", home)
        else:
            program = bubblewrap.command(self._folder / "course", program, self._secrets)
        self._zygote = subprocess.Popen(
            program,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            cwd="/",
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        self._answer(START_SECONDS)

    def _command(self, order: bytes, *descriptors: int) -> dict[str, Any]:
        try:
            socket.send_fds(self._control, [order], descriptors)
        except OSError as error:
            raise SandboxRefused(f"the sandbox has ended: {error}") from None
        return self._answer(OBEY_SECONDS)

    def _answer(self, seconds: float) -> dict[str, Any]:
        """What the zygote says; it never passes on anything from a student's process."""
        data = b""
        with contextlib.suppress(OSError):  # the line is cut
            if readable(self._control, seconds):
                data = self._control.recv(4096)
        if not data:
            self._zygote.kill()
            said = self._zygote.stderr.read().decode(errors="replace")
            raise SandboxRefused(isolation_check.does_not_start(said))
        return json.loads(data)

    def _look(self) -> tuple[float, bool]:
        """What the student's processes have had of the processor, and whether they want more."""
        try:
            seen = self._command(b"look")
        except SandboxRefused:  # it has ended, and the student's process with it
            return 0.0, True
        return self._group.seconds() if self._group else seen["busy"], seen["awake"]

    def _end_zygote(self) -> None:
        if self._zygote is not None:
            self._zygote.kill()
            self._zygote.wait()
            self._zygote.stderr.close()
            self._control.close()
            self._zygote = self._control = None


def _filled(lesson: str) -> Temporary:
    """A temporary folder with what the sandbox shows."""
    try:
        made = Temporary()
        try:
            made.path.chmod(0o755)  # inside, the reader may be another user
            visible_files.prepare(made.path / "course", lesson)
        except BaseException:
            made.close()
            raise
    except OSError as error:
        # Of several files that shutil could not copy, the first says why.
        why = os.strerror(error.errno) if error.errno else error.args[0][0][2]
        raise SandboxRefused(
            f"no sandbox can be made in {tempfile.gettempdir()}: {why}. Make room there, or let "
            "TMPDIR name another folder, and run the same command again"
        ) from None
    return made


def _describe(status: int | None) -> str:
    """Say how a process ended by itself; '' if it was still running."""
    if status is None:
        return ""
    if status == OUT_OF_MEMORY:
        return "it had no memory left: what the notebook keeps in its variables counts, too"
    if status >= 0:
        return f"it ended itself with status {status}"
    return {-9: "it was killed (out of memory?)", -24: "it used too much CPU time"}.get(
        status, f"it was ended by signal {-status}"
    )
