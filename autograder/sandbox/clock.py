"""What a student's processes may take of the processor, and how long they are waited for.

An answer is charged with what it takes: the processor time of all its processes, and the time in
which all of them sleep. It is not charged with waiting for a processor or for the disk, which is
the machine's doing; for that, the grader waits many times as long.
"""

import select
import socket
import time
from collections.abc import Callable

from autograder.inside.messages.codec import STEP

GAP = 1.0  # a longer step counts as this: the machine slept, or had no time for the grader either


class OutOfTime(Exception):
    """A limit was met; str() says which. ``starved`` is whether this machine gave too little."""

    def __init__(self, why: str, starved: bool = False) -> None:
        super().__init__(why)
        self.starved = starved


class Allowance:
    """So many ``seconds``, asleep or of processor time, and ``patience`` times as many in all."""

    def __init__(self, seconds: float, patience: float) -> None:
        self.seconds, self._most = seconds, patience * seconds
        self.busy = self.asleep = self.waited = 0.0

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return self.busy + self.asleep > self.seconds or self.waited > self._most

    def charge(self, busy: float, asleep: float, waited: float) -> None:
        """Take off what was used; raises OutOfTime where nothing is left."""
        self.busy, self.asleep = self.busy + busy, self.asleep + asleep
        self.waited += waited
        if self.spent:
            starved = self.busy + self.asleep <= self.seconds
            raise OutOfTime(self._why(starved), starved)

    def _why(self, starved: bool) -> str:
        if starved:
            given = f"this machine gave it {self.busy:.1f} s of processor time"
            return f"it was not done after {self.waited:.0f} s, in which {given}"
        if self.asleep < 0.1 * self.seconds:
            return f"it took more than {self.seconds:g} s of processor time"
        slept = f"{self.asleep:.1f} s in which it slept or waited"
        return f"it took more than {self.seconds:g} s: {self.busy:.1f} s of work and {slept}"


class Clock:
    """Charges a student's processes for each request, and for the notebook as a whole.

    ``look`` says how much processor time they have had since their start, and whether one of them
    runs, or would if it could.
    """

    def __init__(
        self, look: Callable[[], tuple[float, bool]], notebook: Allowance, patience: float
    ) -> None:
        self._look, self._notebook, self._patience = look, notebook, patience
        self._busy = 0.0  # at the last look
        self._waited = self._silent = 0.0  # since then, and how much of it brought nothing

    def allow(self, seconds: float) -> None:
        """Give the requests that follow so many seconds together."""
        self._request = Allowance(seconds, self._patience)

    def passed(self, seconds: float, silent: bool) -> None:
        """Take note of a step of waiting; raises OutOfTime.

        ``silent``  nothing came. Else, on a busy machine, it may have come long before it was read.
        """
        self._waited += min(seconds, GAP)
        self._silent += min(seconds, GAP) if silent else 0.0
        if self._waited < STEP:
            return
        busy, awake = self._look()
        worked = max(0.0, busy - self._busy)
        asleep = 0.0 if awake else max(0.0, self._silent - worked)
        waited, self._busy = self._waited, busy
        self._waited = self._silent = 0.0
        try:
            self._notebook.charge(worked, asleep, waited)
        except OutOfTime as error:
            raise OutOfTime(f"the notebook's time is up: {error}", error.starved) from None
        self._request.charge(worked, asleep, waited)


def readable(connection: socket.socket, seconds: float) -> bool:
    """Whether something comes in ``seconds`` of this process's own waiting."""
    while seconds > 0:
        start = time.monotonic()
        if select.select([connection], [], [], STEP)[0]:
            return True
        seconds -= min(time.monotonic() - start, GAP)
    return False
