"""Bounds on what a check does with the replies, on the grader's own side: time and memory."""

import contextlib
import ctypes
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

from autograder.checking.run_check import OutOfOwnTime
from autograder.inside.answer import AnyAnswer
from autograder.inside.isolation import data_held

AGAIN_SECONDS = 1.0  # where an exception is swallowed, by a destructor say, the next one is not
LOOK_SECONDS = 0.1


class OwnTime:
    """Raises OutOfOwnTime in ``with OwnTime(seconds):`` after so much CPU time of this process.

    CPU time, since a busy machine is nobody's fault; it does not run in ``with paused():``, in
    which the student is waited for, so that no message is ever torn by it. A thread of its own
    watches, for a signal would reach the main thread only, and a Dask worker grades in another.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._watched = threading.get_ident()
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._end = math.inf  # as of time.process_time
        # Here, where no bound on memory holds yet: its stack would count.
        threading.Thread(target=self._look, daemon=True).start()

    def __enter__(self) -> Self:
        self._go_on(self._seconds)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._stop()
        finally:  # it may strike on this very line
            self._stop()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let no time pass."""
        with self._lock:
            left, self._end = self._end - time.process_time(), math.inf
        try:
            yield
        finally:
            self._go_on(max(left, 0.001))

    def _go_on(self, seconds: float) -> None:
        with self._lock:
            self._end = time.process_time() + seconds

    def _stop(self) -> None:
        self._ended.set()
        with self._lock:
            self._interrupt(None)  # what was on its way

    def _look(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            with self._lock:
                if time.process_time() > self._end and not self._ended.is_set():
                    self._interrupt(OutOfOwnTime)
                    self._end = time.process_time() + AGAIN_SECONDS

    def _interrupt(self, error: type[BaseException] | None) -> None:
        thrown = None if error is None else ctypes.py_object(error)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._watched), thrown)


@contextlib.contextmanager
def own_memory(most: int) -> Iterator[None]:
    """Let this process take at most ``most`` bytes more than it holds now.

    What asks for more gets MemoryError or, from PyTorch, RuntimeError. Only on Linux.
    """
    held = data_held()
    if held is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    set_already = [one for one in (soft, hard) if one != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([held + most, *set_already]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


class Waiting:
    """An answer for which the ``clock`` is paused whenever it is asked."""

    def __init__(self, answer: AnyAnswer, clock: OwnTime) -> None:
        self._answer, self._clock = answer, clock

    def __getattr__(self, request: str) -> Callable[..., Any]:
        def ask(*details: Any, **how: Any) -> Any:
            with self._clock.paused():
                found = getattr(self._answer, request)(*details, **how)
            return Waiting(found, self._clock) if request in ("build", "exchanged") else found

        return ask
