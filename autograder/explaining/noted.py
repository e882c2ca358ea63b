"""Everything that an answer is asked while it is judged, by its check and by the probes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from autograder.checking.asking.questions import Question, Replied
from autograder.checking.toolbox.failure import current_stage, is_care
from autograder.inside.answer import AnswerRaised, AnyAnswer, Args, Kwargs, Reply
from autograder.inside.messages.values import copied


@dataclass(eq=False)  # two are never the same one
class Exchange:
    """A question, and the reply to it; None where the answer was lost over it."""

    question: Question
    reply: Replied | None = None


class Noted:
    """An answer that notes in ``log`` what it is asked, and what it replies.

    The values in the log are the objects that the check gets: it can be seen of which it speaks.
    """

    def __init__(self, answer: AnyAnswer, log: list[Exchange], handle: int = 0) -> None:
        self._answer, self._log, self._handle = answer, log, handle

    def build(self, args: Args, kwargs: Kwargs, **how: Any) -> "Noted":
        """Build an object, whose number is that of the objects so far."""
        built = 1 + sum(one.question.built > 0 for one in self._log)
        return Noted(self._ask("build", (list(args), kwargs), how, built), self._log, built)

    def __getattr__(self, request: str) -> Callable[..., Any]:
        return lambda *details, **how: self._ask(request, details, how)

    def _ask(
        self, request: str, details: tuple[Any, ...], how: dict[str, Any], built: int = 0
    ) -> Any:
        asked = self._handle, request, copied(details), built, tuple(how.items())
        question = Question(*asked, stage=current_stage(), is_care=is_care())
        exchange = Exchange(question)
        self._log.append(exchange)
        try:
            found = getattr(self._answer, request)(*details, **how)
        except AnswerRaised as error:
            exchange.reply = Replied("raised", (error.kind, error.message), where=error.where)
            raise
        if isinstance(found, Reply):
            exchange.reply = Replied("value", found.value, tuple(found.modified))
        else:
            exchange.reply = Replied("value", None if built else found)
        return found
