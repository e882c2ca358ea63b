"""A bound on what a check does with the replies, on the grader's own side."""

import contextlib
import ctypes
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

from autograder.inside.answer import AnyAnswer

AGAIN_SECONDS = 1.0  # where an exception is swallowed, by a destructor say, the next one is not
LOOK_SECONDS = 0.1  # between two looks at another thread


class OutOfOwnTime(BaseException):
    """A check worked too long by itself.

    Like StudentLost no Exception, so that no check can take it for an error of the answer.
    """


class OwnTime:
    """Raises OutOfOwnTime in ``with OwnTime(seconds):`` after so much CPU time of this process.

    CPU time, since a busy machine is nobody's fault; it does not run in ``with paused():``, in
    which the student is waited for, so that no message is ever torn by it.

    Only the main thread gets signals. Another one, such as that of a Dask worker, is watched.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        on_main = threading.current_thread() is threading.main_thread()
        self._timer: _Alarm | _Watch = _Alarm() if on_main else _Watch()

    def __enter__(self) -> Self:
        self._timer.start(self._seconds)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._timer.end()
        finally:  # it may ring on this very line
            self._timer.end()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let no time pass."""
        left = self._timer.stop()
        try:
            yield
        finally:
            self._timer.go_on(max(left, 0.001))


class _Alarm:
    """Rings on the main thread."""

    def start(self, seconds: float) -> None:
        self._before = signal.signal(signal.SIGPROF, _ring)
        self.go_on(seconds)

    def stop(self) -> float:
        """Stop the clock; return the seconds that are left."""
        return signal.setitimer(signal.ITIMER_PROF, 0)[0]

    def go_on(self, seconds: float) -> None:
        signal.setitimer(signal.ITIMER_PROF, seconds, AGAIN_SECONDS)

    def end(self) -> None:
        self.stop()
        signal.signal(signal.SIGPROF, self._before)


class _Watch:
    """Interrupts another thread than the main one, from a thread of its own."""

    def __init__(self) -> None:
        self._watched = threading.get_ident()
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._end = math.inf  # as of time.process_time

    def start(self, seconds: float) -> None:
        self.go_on(seconds)
        threading.Thread(target=self._look, daemon=True).start()

    def stop(self) -> float:
        """Stop the clock; return the seconds that are left."""
        with self._lock:
            left, self._end = self._end - time.process_time(), math.inf
        return left

    def go_on(self, seconds: float) -> None:
        with self._lock:
            self._end = time.process_time() + seconds

    def end(self) -> None:
        self._ended.set()
        with self._lock:
            self._end = math.inf
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


class Waiting:
    """An answer for which the ``clock`` is paused whenever it is asked."""

    def __init__(self, answer: AnyAnswer, clock: OwnTime) -> None:
        self._answer, self._clock = answer, clock

    def build(self, args: Any, kwargs: Any, **how: Any) -> "Waiting":
        """Construct the class; return the instance as an answer of its own."""
        with self._clock.paused():
            return Waiting(self._answer.build(args, kwargs, **how), self._clock)

    def __getattr__(self, request: str) -> Callable[..., Any]:
        def ask(*details: Any, **how: Any) -> Any:
            with self._clock.paused():
                return getattr(self._answer, request)(*details, **how)

        return ask


def _ring(*_: object) -> None:
    raise OutOfOwnTime
