"""The student's process: runs cells and answers the grader's requests. Runs inside the sandbox.

Nothing here is trusted by the grader: the student's code shares this process and may change any of
it. All it can do is send wrong answers.
"""

import gc
import io
import sys
import traceback
from typing import Any

from autograder.inside.answer import AnswerRaised, LocalAnswer, Reply, message
from autograder.inside.messages.codec import Channel, ChannelClosed


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
            reply = self._do(**request)
        except AnswerRaised as error:
            reply = _raised(error.kind, error.message, error.where)
        except BaseException as error:  # KeyboardInterrupt, or a class of the student's own
            reply = _raised(type(error).__name__, "")
        reply["stdout"], reply["stderr"] = (stream.text() for stream in printed)
        return reply

    def _do(self, id: int, do: str, **details: Any) -> dict[str, Any]:
        if do == "run":
            return self._run(**details)
        return self._resolve(**details) if do == "resolve" else self._ask(do, **details)

    def _run(self, source: str) -> dict[str, Any]:
        result = self._shell.run_cell(source, store_history=False)
        error = result.error_before_exec or result.error_in_exec
        if error is not None:
            described = describe(error, source)
            self._let_go(error)
            return {"error": described}
        if result.result is None:
            return {}
        shown = self._shell.display_formatter.format(result.result)[0].get("text/plain", "")
        return {"shown": shown[: self._output_chars]}

    def _let_go(self, error: BaseException) -> None:
        """Free what the frames of a failed cell hold: else the cells after it might lack memory.

        The shell's last result refers to its own frame, which lasts until a collection.
        """
        self._shell.last_execution_result = None
        traceback.clear_frames(error.__traceback__)
        if isinstance(error, MemoryError):
            gc.collect()

    def _resolve(self, name: str) -> dict[str, Any]:
        """Find what the notebook calls ``name``; reply with a number for it, and its module."""
        if name not in self._shell.user_ns:
            return {"value": None}
        target = self._shell.user_ns[name]
        module = getattr(target, "__module__", "__main__")
        return {"value": self._keep(LocalAnswer(target)), "module": str(module)[:100]}

    def _keep(self, answer: LocalAnswer) -> int:
        self._answers.append(answer)
        return len(self._answers) - 1

    def _ask(self, kind: str, answer: int, **details: Any) -> dict[str, Any]:
        """Make one of the requests that ``LocalAnswer`` describes."""
        found = getattr(self._answers[answer], kind)(**details)
        if isinstance(found, Reply):
            return {"value": found.value, "modified": found.modified}
        return {"value": self._keep(found) if isinstance(found, LocalAnswer) else found}


class Limited(io.StringIO):
    """A text stream that keeps the first ``room`` characters and counts the rest."""

    encoding = "utf-8"

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room, self.dropped = room, 0

    def write(self, text: str) -> int:
        """Keep what there is room for."""
        kept = text[: self._room]
        self._room -= super().write(kept)
        self.dropped += len(text) - len(kept)
        return len(text)

    def text(self) -> str:
        """What was kept, and a last line that says how much was not."""
        more = f"\n… {self.dropped} more characters are not shown\n" if self.dropped else ""
        return self.getvalue() + more


def describe(error: BaseException, source: str = "") -> dict[str, Any]:
    """A cell's exception as plain values: its name, its message, its lines in the notebook."""
    if isinstance(error, SyntaxError) and error.msg == "incomplete input":
        error = _in_python(source) or error  # IPython does not say which bracket stays open
    syntax = error if isinstance(error, SyntaxError) and error.lineno is not None else None
    frames = [
        f"line {frame.lineno}, in {frame.name}: {frame.line or ''}"
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith("<")
    ]
    if syntax is not None:
        frames.append(f"line {syntax.lineno}: {(syntax.text or '').strip()}")
    # A SyntaxError's own text ends in the made-up name of the cell's file.
    told = message(error if syntax is None else syntax.msg)
    return {"name": type(error).__name__, "message": told, "lines": frames[-10:]}


def _in_python(source: str) -> SyntaxError | None:
    """What Python itself says of a cell that does not compile."""
    try:
        compile(source, "<cell>", "exec")
    except SyntaxError as error:
        return error
    return None


def one_line(described: dict[str, Any]) -> str:
    """A described exception in one line: its name, its message, and the last of its lines."""
    where = f", {described['lines'][-1]}" if described["lines"] else ""
    return f"{described['name']}: {described['message']}{where}".replace("\n", " ")


def _raised(kind: str, said: str, where: str = "") -> dict[str, Any]:
    return {"raised": {"kind": kind, "message": said, "where": where}}


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
