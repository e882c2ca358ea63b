"""A bound on what a check does with the replies, on the grader's own side."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, Self

from autograder.inside.answer import AnyAnswer

AGAIN_SECONDS = 1.0  # where an exception is swallowed, by a destructor say, the next one is not


class OutOfOwnTime(BaseException):
    """A check worked too long by itself.

    Like StudentLost no Exception, so that no check can take it for an error of the answer.
    """


class OwnTime:
    """Raises OutOfOwnTime in ``with OwnTime(seconds):`` after so much CPU time of this process.

    CPU time, since a busy machine is nobody's fault; it does not run in ``with paused():``, in
    which the student is waited for, so that no message is ever torn by it.

    Only the main thread gets signals. On another one, such as that of a Dask worker, nothing is
    bounded here: what remains is that no reply is large, and in a pool of processes its deadline.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._heard = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Self:
        if self._heard:
            self._before = signal.signal(signal.SIGPROF, _ring)
            signal.setitimer(signal.ITIMER_PROF, self._seconds, AGAIN_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        if self._heard:
            try:
                signal.setitimer(signal.ITIMER_PROF, 0)
            finally:  # it may ring on this very line
                signal.setitimer(signal.ITIMER_PROF, 0)
                signal.signal(signal.SIGPROF, self._before)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let no time pass."""
        if not self._heard:
            yield
            return
        left, _ = signal.setitimer(signal.ITIMER_PROF, 0)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, max(left, 0.001), AGAIN_SECONDS)


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
