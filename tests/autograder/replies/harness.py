"""A student's process that replies as it is told, and the grader's that is measured meanwhile."""

import mmap
import os
import re
import resource
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import torch

from autograder.checking.toolbox import registry
from autograder.checking.toolbox.registry import reference
from autograder.grading.execution import execute
from autograder.inside import answer as inside
from autograder.inside.answer import AnswerRaised, LocalAnswer, Reply
from autograder.inside.limits import DEFAULT
from autograder.inside.messages.codec import Channel
from autograder.inside.server import Server
from autograder.sandbox.clock import Clock
from autograder.sandbox.process import Ending, StudentProcess

from . import hostile

MIB = 2**20
PRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
SEED = 11


@dataclass
class Outcome:
    """What one check did with one kind of reply."""

    check: str
    kind: str
    after: int
    verdict: str  # 'refused', 'accepted', or the exception that got out
    reason: str
    hostile: bool  # whether a hostile reply was sent
    mib: float  # by how much the grader's memory grew at most
    seconds: float  # of the grader's CPU

    def faults(self, most_mib, most_seconds):
        """What is wrong with it, in words."""
        found = []
        if self.verdict not in ("refused", "accepted"):
            found.append(self.verdict)
        wrong = self.hostile and not self.after and self.kind not in hostile.HARMLESS
        if self.verdict == "accepted" and wrong:
            found.append("accepted")
        if len(self.reason) > execute.REASON_CHARS:
            found.append(f"a reason of {len(self.reason)} characters")
        if PRINTABLE.search(self.reason):
            found.append("a reason that cannot be printed")
        if self.mib > most_mib:
            found.append(f"{self.mib:.0f} MiB")
        if self.seconds > most_seconds:
            found.append(f"{self.seconds:.1f} s")
        return found


class _Liar:
    """Patches the student's side: from reply number ``after`` on, it replies with ``kind``."""

    def __init__(self, kind, after, told):
        self.kind, self.after, self.told, self.count = kind, after, told, 0

    def patch(self):
        """Take the place of what LocalAnswer does."""
        for request, makers in (
            ("call", hostile.VALUES),
            ("gradients", hostile.GRADIENTS),
            ("parameters", hostile.PARAMETERS),
        ):
            self._wrap(request, makers.get(self.kind))

    def _wrap(self, request, make):
        honest = getattr(LocalAnswer, request)

        def reply(answer, *args, **kwargs):
            self.count += 1
            found = honest(answer, *args, **kwargs)
            if self.count <= self.after:
                return found
            if self.kind in hostile.RAISED:
                self.told[0] = 1
                raise AnswerRaised(*hostile.RAISED[self.kind], where="w" * 10_000)
            if make is None:
                return found
            value = found if request == "parameters" else found.value
            try:
                made = make(value)
            except (TypeError, ValueError, IndexError, AttributeError, RuntimeError):
                return found
            if _same(made, value):
                return found
            self.told[0] = 1
            return made if request == "parameters" else Reply(made, found.modified)

        setattr(LocalAnswer, request, reply)


def _same(one, other):
    """Whether a value came out as it went in, as a text does that is to be bytes."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if type(one) is dict:
        return list(one) == list(other) and _same([*one.values()], [*other.values()])
    if type(one) in (list, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other


class _Shell:
    def __init__(self, name, target):
        self.user_ns = {name: target}


def _child(connection, name, target, liar):
    """Serve as a student's process would; never returns."""
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        liar.patch()
        inside.plain = lambda value: value  # whatever it is, it is sent
        Server(Channel(connection, 2**31, trusted=True), _Shell(name, target), 1000).serve()
        status = 0
    finally:
        os._exit(status)


class Box:
    """In the place of a Sandbox: starts a forked process that lies."""

    def __init__(self, name, target, kind, after, limits=DEFAULT):
        self.limits, self.told = limits, mmap.mmap(-1, 1)
        self._what = name, target, _Liar(kind, after, self.told)
        self._pid = None

    def start(self, notebook):
        """A StudentProcess."""
        self.stop()
        ours, theirs = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            ours.close()
            _child(theirs, *self._what)
        theirs.close()
        clock = Clock(self._look, notebook, self.limits.patience)
        return StudentProcess(ours, self.limits, self.stop, clock)

    def _look(self):
        return 0.0, False  # its time is not what is measured here

    def stop(self, dying=False):
        """End it."""
        if self._pid is not None:
            os.kill(self._pid, 9)
            os.waitpid(self._pid, 0)
            self._pid = None
        return Ending()


def _memory(field):
    text = Path("/proc/self/status").read_text()
    return int(re.search(rf"^{field}:\s+(\d+)", text, re.MULTILINE)[1]) / 1024


def judge(item, kind, after=0, limits=DEFAULT):
    """Let the check judge an answer that lies; an Outcome."""
    right = reference(item) or next(one.target for one in registry.alternatives(item))
    module, name = right.__module__, item.name
    box = Box(name, right, kind, after, limits)
    session = execute._Session(box)
    Path("/proc/self/clear_refs").write_text("5")
    before, start = _memory("VmRSS"), time.process_time()
    try:
        right.__module__ = "__main__"
        with mock.patch.object(execute, "_seed", lambda name: SEED):
            failure = session.check(name)
        verdict = "accepted" if failure is None else "refused"
        reason = "" if failure is None else execute.clean(str(failure))[: execute.REASON_CHARS]
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        verdict, reason = f"{type(error).__name__}: {str(error)[:200]}", ""
    finally:
        right.__module__ = module
        box.stop()
    seconds, mib = time.process_time() - start, _memory("VmHWM") - before
    return Outcome(name, kind, after, verdict, reason, bool(box.told[0]), mib, seconds)
