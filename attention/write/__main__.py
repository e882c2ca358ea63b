"""Write on with a trained language model: `python -m attention.write runs/text --prompt "Emma"`.

The text appears token by token, behind its prompt. With `--count N` there are N texts, written side
by side: the first appears as it grows, the others behind it, each below a line with its number.
"""

import argparse
import io
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from attention.train.command import status_of
from attention.train.core.devices import choose_device
from attention.train.core.sampling import Sampling
from attention.train.corpora import texts
from attention.train.runs.settings import Parser
from attention.train.write_run import Run, encode, open_run, write
from attention.write.output import Streams, as_json, printable, title
from autograder.terminal_output import replace_what_cannot_be_shown

PROGRAM = "python -m attention.write"
MOST = 1000  # texts at once: each keeps keys and values of its own
LARGEST = 1 << 20  # bytes of a prompt from standard input


def parser() -> Parser:
    """The argument parser of the command."""
    made = Parser(
        prog=PROGRAM,
        description="Let a language model of `python -m attention.train text` go on with a prompt, "
        "also one whose training has not ended. Each token is read once: keys and values are kept.",
    )
    made.add_argument("run", type=Path, metavar="RUN", help="folder of a training, or its --export")
    made.add_argument(
        "--prompt",
        default="",
        metavar="TEXT",
        help="what to go on with; - reads standard input, without the end of its last line "
        "(default: nothing, then the text begins as behind the end of a line)",
    )
    made.add_argument("--length", type=int, default=200, help="tokens at most (default: 200)")
    made.add_argument("--count", type=int, default=1, metavar="N", help="how many texts")
    made.add_argument(
        "--temperature", type=float, default=0.8, help="0: always the best token (default: 0.8)"
    )
    made.add_argument(
        "--top-k", type=int, default=0, metavar="K", help="draw from the K best (default: 0, all)"
    )
    made.add_argument(
        "--top-p",
        type=float,
        default=0.9,
        metavar="P",
        help="draw from the fewest tokens that have this probability (default: 0.9; 1: all)",
    )
    made.add_argument(
        "--seed", type=int, default=0, help="of the draws; the next text has the next (default: 0)"
    )
    made.add_argument("--device", help="cuda, mps or cpu (default: the first there is)")
    made.add_argument(
        "--json", action="store_true", help="a line of JSON for each text, when all are written"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Write; returns the exit status."""
    replace_what_cannot_be_shown()
    return status_of(PROGRAM, run, parser().parse_args(arguments), "\nstopped")


def run(options: argparse.Namespace) -> int:
    """Write with parsed options; returns the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # as the texts it learned from
    check(options)
    opened = open_run(options.run, choose_device(options.device))
    for note in opened.notes:
        print(note, file=sys.stderr, flush=True)
    prompt = from_stdin() if options.prompt == "-" else options.prompt
    how = Sampling(options.temperature, options.top_k, options.top_p, options.seed)
    ids = encode(opened, prompt)
    if options.json:
        streams = Streams(opened.pieces, options.count, show=False)
        written = write(opened, ids, how, options.count, options.length, streams.see)
        as_json(prompt, streams.finish(), list(map(len, written)), options.length)
        return 0
    show(opened, prompt, ids, how, options)
    return 0


def check(options: argparse.Namespace) -> None:
    """Raise ValueError, with one sentence, for options that make no sense."""
    for name, least, most in (("length", 1, math.inf), ("count", 1, MOST), ("top_k", 0, math.inf)):
        value = getattr(options, name)
        if not least <= value <= most:
            span = f"at least {least}" if most == math.inf else f"from {least} to {most}"
            raise ValueError(f"--{name.replace('_', '-')} must be {span}, not {value}")
    if not 0 <= options.temperature < math.inf:
        raise ValueError(f"--temperature must be at least 0, not {options.temperature}")
    if not 0 < options.top_p <= 1:
        raise ValueError(f"--top-p must be above 0 and at most 1, not {options.top_p}")
    if not 0 <= options.seed < 2**62:
        raise ValueError(f"--seed must be at least 0 and below 2^62, not {options.seed}")


def from_stdin() -> str:
    """The prompt from standard input, without the end of its last line."""
    if sys.stdin is None or sys.stdin.closed:
        raise ValueError("there is no standard input: give the text behind --prompt")
    content = sys.stdin.buffer.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"standard input has more than {LARGEST} bytes: a prompt is a beginning")
    return texts.decode(content, "standard input").removesuffix("\n")


def show(
    opened: Run, prompt: str, ids: list[int], how: Sampling, options: argparse.Namespace
) -> None:
    """Print the prompt and what is written, as it comes; the other texts behind it."""
    title(1, options.count)
    print(printable(prompt), end="", flush=True)
    streams = Streams(opened.pieces, options.count, show=True)
    write(opened, ids, how, options.count, options.length, streams.see)
    _, *others = streams.finish()
    print(flush=True)
    for number, text in enumerate(others, 2):
        title(number, options.count)
        print(f"{printable(prompt)}{printable(text)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
