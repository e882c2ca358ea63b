"""The student's process: runs cells and answers the grader's requests. Runs inside the sandbox.

Nothing here is trusted by the grader: the student's code shares this process and may change any of
it. All it can do is send wrong answers.
"""

import gc
import sys
import traceback
from typing import Any

from autograder.inside.answer import AnswerRaised, LocalAnswer
from autograder.inside.channel import Channel, ChannelClosed


class Server:
    """Answers requests on ``channel`` with the namespace of ``shell`` until it is closed."""

    def __init__(self, channel: Channel, shell: Any, output_chars: int) -> None:
        self._channel = channel
        self._shell = shell
        self._output_chars = output_chars
        self._answers: list[LocalAnswer] = []

    def serve(self) -> None:
        """Answer requests, one at a time, until the grader hangs up."""
        while True:
            try:
                request = self._channel.receive()
            except ChannelClosed:
                return
            reply = self._reply(request)
            try:
                self._channel.send({**reply, "id": request["id"]})
            except (TypeError, ValueError) as error:  # an integer of 10 000 digits, say
                raised = _raised("ValueError", f"the result cannot be sent: {error}")
                self._channel.send({**raised, "id": request["id"]})

    def _reply(self, request: dict[str, Any]) -> dict[str, Any]:
        printed = Limited(self._output_chars), Limited(self._output_chars)
        sys.stdout, sys.stderr = printed
        try:
            reply = getattr(self, f"_{request.pop('do')}")(**request)
        except AnswerRaised as error:
            reply = _raised(error.kind, error.message, error.where)
        except BaseException as error:  # KeyboardInterrupt, or a class of the student's own
            reply = _raised(type(error).__name__, "")
        reply["stdout"], reply["stderr"] = (stream.text() for stream in printed)
        return reply

    def _run(self, id: int, source: str) -> dict[str, Any]:
        """Run a cell in the namespace."""
        result = self._shell.run_cell(source, store_history=False)
        error = result.error_before_exec or result.error_in_exec
        reply = {} if error is None else {"error": describe(error)}
        if error is not None:
            self._let_go(error)
        if error is None and result.result is not None:
            reply["shown"] = self._shell.display_formatter.format(result.result)[0].get(
                "text/plain", ""
            )[: self._output_chars]
        return reply

    def _let_go(self, error: BaseException) -> None:
        """Free what the frames of a failed cell hold: else the cells after it might lack memory.

        The shell keeps its last result, which refers to its own frame: that lasts until a
        collection.
        """
        self._shell.last_execution_result = None
        traceback.clear_frames(error.__traceback__)
        if isinstance(error, MemoryError):
            gc.collect()

    def _resolve(self, id: int, name: str) -> dict[str, Any]:
        """Find what the notebook calls ``name``; reply with a number for it, and its module."""
        if name not in self._shell.user_ns:
            return {"value": None}
        target = self._shell.user_ns[name]
        module = getattr(target, "__module__", "__main__")
        return {"value": self._keep(LocalAnswer(target)), "module": str(module)[:100]}

    def _keep(self, answer: LocalAnswer) -> int:
        self._answers.append(answer)
        return len(self._answers) - 1

    def _build(
        self, id: int, answer: int, args: list[Any], kwargs: dict[str, Any], **how: Any
    ) -> dict[str, Any]:
        return {"value": self._keep(self._answers[answer].build(args, kwargs, **how))}

    def _parameters(self, id: int, answer: int) -> dict[str, Any]:
        return {"value": self._answers[answer].parameters()}

    def _load(self, id: int, answer: int, values: dict[str, Any]) -> dict[str, Any]:
        self._answers[answer].load(values)
        return {"value": None}

    def _train(self, id: int, answer: int, mode: bool) -> dict[str, Any]:
        self._answers[answer].train(mode)
        return {"value": None}

    def _call(
        self, id: int, answer: int, args: list[Any], kwargs: dict[str, Any], **how: Any
    ) -> dict[str, Any]:
        reply = self._answers[answer].call(args, kwargs, **how)
        return {"value": reply.value, "modified": reply.modified}

    def _gradients(
        self,
        id: int,
        answer: int,
        args: list[Any],
        kwargs: dict[str, Any],
        cotangent: Any,
        **how: Any,
    ) -> dict[str, Any]:
        reply = self._answers[answer].gradients(args, kwargs, cotangent, **how)
        return {"value": reply.value, "modified": reply.modified}


class Limited:
    """A text stream that keeps the first ``room`` characters and counts the rest."""

    encoding = "utf-8"

    def __init__(self, room: int) -> None:
        self._parts: list[str] = []
        self._room, self._dropped = room, 0

    def write(self, text: str) -> int:
        """Keep what there is room for."""
        kept = text[: self._room]
        if kept:
            self._parts.append(kept)
        self._room -= len(kept)
        self._dropped += len(text) - len(kept)
        return len(text)

    def text(self) -> str:
        """What was kept, and a last line that says how much was not."""
        more = f"\n… {self._dropped} more characters are not shown\n" if self._dropped else ""
        return "".join(self._parts) + more

    def flush(self) -> None:
        """Nothing is buffered."""

    def isatty(self) -> bool:
        """A notebook's output is no terminal."""
        return False


def describe(error: BaseException) -> dict[str, Any]:
    """A cell's exception as plain values: its name, its message, its lines in the notebook."""
    syntax = error if isinstance(error, SyntaxError) and error.lineno is not None else None
    try:
        # A SyntaxError's own text ends in the made-up name of the cell's file.
        message = str(error if syntax is None else syntax.msg)[:500]
    except Exception:  # a student's exception may fail to print itself
        message = ""
    frames = [
        f"line {frame.lineno}, in {frame.name}: {frame.line or ''}"
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith("<")
    ]
    if syntax is not None:
        frames.append(f"line {syntax.lineno}: {(syntax.text or '').strip()}")
    return {"name": type(error).__name__, "message": message, "lines": frames[-10:]}


def _raised(kind: str, message: str, where: str = "") -> dict[str, Any]:
    return {"raised": {"kind": kind, "message": message, "where": where}}


# Magics that only a notebook's kernel has; none changes what a name stands for.
KERNEL_MAGICS = ("autosave", "clear", "cls", "connect_info", "less", "man", "more", "qtconsole")


def shell() -> Any:
    """An IPython shell that shows nothing by itself: no history, no figures, no tracebacks.

    Magics do what they do in a notebook, or nothing where they choose how something is shown.
    """
    import matplotlib

    matplotlib.use("Agg")
    from IPython.core.interactiveshell import InteractiveShell
    from matplotlib_inline.config import InlineBackend

    made: Any = InteractiveShell.instance()
    made.history_manager.enabled = False
    made.display_formatter.active_types = ["text/plain"]
    made.showtraceback = made.showsyntaxerror = lambda *_, **__: None
    made.displayhook.write_output_prompt = lambda: None
    made.displayhook.write_format_data = lambda *_: None
    # For `%matplotlib inline` and `%config InlineBackend.…`: figures stay with Agg.
    made.enable_gui = lambda *_: None
    made.enable_matplotlib = lambda gui=None: (gui, "agg")
    made.configurables.append(InlineBackend.instance(parent=made))
    for name in KERNEL_MAGICS:
        made.register_magic_function(lambda line: None, "line", name)
    made.run_cell("pass", store_history=False)
    return made
