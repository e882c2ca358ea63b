"""A student's process as the grader sees it: run cells in it, and ask its answers."""

import itertools
import socket
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import torch

from autograder.inside.answer import AnswerLost, AnswerRaised, Args, Cotangent, Kwargs, Reply
from autograder.inside.limits import Limits
from autograder.inside.messages.codec import Channel, ChannelClosed, ProtocolError, TooLarge
from autograder.inside.messages.values import Foreign
from autograder.sandbox.clock import Clock, OutOfTime

PLACE_SECONDS = 4.0  # for where a wrong answer fails, which is known after 2 of work or not at all
NO_MESSAGE = "it sent no message of the agreed form"


class Ending(NamedTuple):
    """Why a student's process had ended, or '', and whether the machine may be to blame."""

    why: str = ""
    doubtful: bool = False


class StudentLost(BaseException):
    """The student's process is of no more use; str() says why, as in 'it took more than 10 s'.

    ``doubtful`` is whether the machine may be to blame, which had no time or no memory for it. Like
    KeyboardInterrupt no Exception, so that no check can take it for an error of the answer.
    """

    def __init__(self, why: str, doubtful: bool = False) -> None:
        super().__init__(why)
        self.doubtful = doubtful


class StudentProcess:
    """Sends requests to a student's process and accepts only replies of the agreed form.

    Any failure ends the process and raises StudentLost; it cannot be asked again.
    """

    def __init__(
        self,
        connection: socket.socket,
        limits: Limits,
        stop: Callable[[bool], "Ending"],
        clock: Clock,
    ) -> None:
        self._channel = Channel(connection, limits.frame_bytes, passed=clock.passed)
        self._limits = limits
        self._stop = stop
        self.lost = False  # whether it has ended, and can be asked nothing more
        self._numbers = itertools.count(1)
        self._clock = clock
        self.allow(limits.cell_seconds)

    def allow(self, seconds: float) -> None:
        """Give the requests that follow, together, so much time and room for their replies."""
        self._received = self._channel.received
        self._clock.allow(seconds)

    def run(self, source: str) -> dict[str, Any]:
        """Run a cell; return its outputs: stdout, stderr, and shown or error where there is one."""
        self.allow(self._limits.cell_seconds)
        try:
            reply = self.request("run", source=source)
        except AnswerRaised as error:  # not even IPython could catch it
            reply = {"error": {"name": error.kind, "message": error.message}}
        return _outputs(reply, self._limits.output_chars)

    def resolve(self, name: str) -> tuple["RemoteAnswer", str] | None:
        """Pair (RemoteAnswer, module) for what the notebook calls ``name``; None if nothing."""
        try:
            reply = self.request("resolve", name=name)
        except AnswerRaised:
            return None
        if reply.get("value") is None:
            return None
        module = reply.get("module")
        answer = RemoteAnswer(self, self._number(reply))
        return answer, module if type(module) is str else ""

    def _number(self, reply: dict[str, Any]) -> int:
        """The number of an answer that is now there."""
        number = reply.get("value")
        return number if type(number) is int else self._fail(NO_MESSAGE)

    def request(self, kind: str, **details: Any) -> dict[str, Any]:
        """Send one request and return its reply; raise AnswerRaised, or StudentLost."""
        number = next(self._numbers)
        try:
            self._channel.send({"id": number, "do": kind, **details})
            reply = self._channel.receive()
        except OutOfTime as error:
            self._fail(str(error), doubtful=error.starved)
        except ChannelClosed:
            self._fail("it ended itself", dying=True)
        except TooLarge:
            self._fail(self._limits.exceeded("frame_bytes"))
        except ProtocolError as error:
            self._fail(f"it sent {error}")
        except MemoryError:  # in the middle of a message: what follows it cannot be read
            self._fail("its results take more memory than there is")
        if self._channel.received - self._received > self._limits.replies_bytes:
            self._fail(self._limits.exceeded("replies_bytes"))
        if type(reply.get("id")) is not int or reply["id"] != number:
            self._fail("it sent a message that nobody asked for")
        if "raised" in reply:
            raise _raised(reply["raised"])
        return reply

    def close(self) -> None:
        self._channel.close()

    def _fail(self, reason: str, dying: bool = False, doubtful: bool = False) -> NoReturn:
        self.lost = True
        ended = self._stop(dying)
        raise StudentLost(ended.why or reason, doubtful or ended.doubtful)


class RemoteAnswer:
    """A student's function, class or module in the sandbox, asked as ``LocalAnswer`` describes."""

    def __init__(self, process: StudentProcess, number: int, is_extra: bool = False) -> None:
        self._process, self._number = process, number
        self._is_extra = is_extra  # nothing is lost with it: AnswerLost, and not StudentLost

    def call(self, args: Args, kwargs: Kwargs, **how: Any) -> Reply:
        return _reply(self._ask("call", args=list(args), kwargs=kwargs, **how))

    def gradients(self, args: Args, kwargs: Kwargs, cotangent: Cotangent, **how: Any) -> Reply:
        details = {"args": list(args), "kwargs": kwargs, "cotangent": cotangent}
        reply = _reply(self._ask("gradients", **details, **how))
        count = sum(isinstance(item, torch.Tensor) and item.is_floating_point() for item in args)
        if not _are_gradients(reply.value, count):
            reply.value = Foreign("no set of gradients")
        return reply

    def build(self, args: Args, kwargs: Kwargs, **how: Any) -> "RemoteAnswer":
        return self._built(self._ask("build", args=list(args), kwargs=kwargs, **how))

    def _built(self, reply: dict[str, Any]) -> "RemoteAnswer":
        return RemoteAnswer(self._process, self._process._number(reply), self._is_extra)

    def places(self, trials: Sequence[Any]) -> Any:
        self._process.allow(PLACE_SECONDS)
        extra = RemoteAnswer(self._process, self._number, is_extra=True)
        return extra._ask("places", trials=list(trials))["value"]

    def exchanged(self, place: Any, values: Sequence[Any]) -> "RemoteAnswer":
        extra = RemoteAnswer(self._process, self._number, is_extra=True)
        return extra._built(extra._ask("exchanged", place=place, values=list(values)))

    def parameters(self) -> Any:
        named = self._ask("parameters")["value"]
        if type(named) is not dict:
            raise AnswerRaised("ParameterNames", "the parameters are not named tensors")
        return named

    def load(self, values: dict[str, torch.Tensor]) -> None:
        self._ask("load", values=values)

    def train(self, mode: bool) -> None:
        self._ask("train", mode=mode)

    def _ask(self, kind: str, **details: Any) -> dict[str, Any]:
        try:
            reply = self._process.request(kind, answer=self._number, **details)
            return reply if "value" in reply else self._process._fail(NO_MESSAGE)
        except StudentLost as lost:
            if self._is_extra:
                raise AnswerLost(str(lost)) from None
            raise


def _reply(reply: dict[str, Any]) -> Reply:
    modified = reply.get("modified")
    if type(modified) is not list:
        modified = ["the arguments"]
    return Reply(reply["value"], [str(name)[:50] for name in modified[:10]])


def _are_gradients(value: Any, count: int) -> bool:
    """Whether it is ({name: gradient}, [gradient of each of ``count`` inputs]), or says why not.

    A gradient that is left out would be compared with nothing.
    """
    if isinstance(value, Foreign):
        return True
    if type(value) is not tuple or [type(part) for part in value] != [dict, list]:
        return False
    named, others = value
    allowed = (torch.Tensor, Foreign, type(None))
    return len(others) == count and all(
        isinstance(one, allowed) for one in (*named.values(), *others)
    )


def _raised(content: Any) -> AnswerRaised:
    content = content if type(content) is dict else {}
    kind, message, where = (str(content.get(key, ""))[:500] for key in ("kind", "message", "where"))
    return AnswerRaised(kind or "Exception", message, where)


def _outputs(reply: dict[str, Any], room: int) -> dict[str, Any]:
    """The outputs of a cell as strings of bounded size, whatever was sent."""
    outputs: dict[str, Any] = {
        key: str(reply.get(key, ""))[: room + 100] for key in ("stdout", "stderr", "shown")
    }
    error = reply.get("error")
    if type(error) is dict:
        lines = error.get("lines")
        outputs["error"] = {
            "name": str(error.get("name", ""))[:100],
            "message": str(error.get("message", ""))[:500],
            "lines": [str(line)[:200] for line in lines[:10]] if type(lines) is list else [],
        }
    return outputs
