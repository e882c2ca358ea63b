"""Talk with a published model in the course's own layers: `python -m attention.chat`.

It is SmolLM2-135M-Instruct, which `autograder data fetch smollm2` fetches. Lesson 20's decoder
computes, lesson 08's byte-pair encoding cuts the texts, lesson 13's filters draw.
"""

import argparse
import contextlib
import functools
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from attention.chat import mine
from attention.provided.models.decoders import smollm2
from attention.train.command import status_of
from attention.train.core import low_rank
from attention.train.core.sampling import Sampling, add_options, check
from attention.train.pieces import collected
from attention.train.runs.settings import Parser
from attention.train.write_run import Characters, published, write
from autograder.terminal_output import replace_what_cannot_be_shown

PROGRAM = "python -m attention.chat"


def parser() -> Parser:
    """The argument parser of the command."""
    made = Parser(
        prog=PROGRAM,
        description="Talk with SmolLM2-135M-Instruct, a small published model, in the layers of "
        "lesson 20. An empty line, or the end of the input, ends the conversation; Ctrl-C ends an "
        "answer.",
    )
    made.add_argument(
        "--system",
        metavar="TEXT",
        help="what the model is told first (default: the words of its makers, with --lora nothing)",
    )
    made.add_argument(
        "--lora",
        type=Path,
        metavar="FILE",
        help="answer as `python -m attention.teach` has taught it",
    )
    made.add_argument(
        "--mine",
        nargs="?",
        type=Path,
        const=Path(collected.FOLDER),
        metavar="FOLDER",
        help="answer with your own pieces, from `autograder collect` (default folder: mine)",
    )
    add_options(made, length=300, temperature=0.0)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Talk; returns the exit status."""
    replace_what_cannot_be_shown()
    options = parser().parse_args(arguments)
    try:
        return status_of(PROGRAM, run, options, "\nstopped", "talk again")
    finally:
        collected.take_back()


def run(options: argparse.Namespace) -> int:
    """Talk with parsed options; returns the exit status."""
    check(options)
    collected.take_back()
    if options.mine is not None:
        print(f"trying your pieces in {options.mine} …", file=sys.stderr, flush=True)
        mine.use(options.mine, smollm2.read())
    lora, system = options.lora, options.system
    if system is None:
        system = low_rank.SYSTEM if lora else smollm2.SYSTEM
    writer = published(torch.device("cpu"), functools.partial(low_rank.add, lora) if lora else None)
    tokens = writer.pieces
    how = Sampling(options.temperature, options.top_k, options.top_p, options.seed)
    messages: list[tuple[str, str]] = []
    while said := _asked():
        messages.append(("user", said))
        read = tokens.encode(smollm2.prompt(messages, system))
        if len(read) + options.length > smollm2.ROOM:
            raise ValueError(
                f"the conversation has {len(read)} tokens, and with an answer of {options.length} "
                f"it is longer than the {smollm2.ROOM} that the model can read: begin a new one"
            )
        shown, each = Characters(tokens), replace(how, seed=how.seed + len(messages))
        with contextlib.suppress(KeyboardInterrupt):
            write(writer, read, each, options.length, shown.see)
        shown.end()
        messages.append(("assistant", tokens.decode(shown.seen)))
    return 0


def _asked() -> str:
    """The next line that somebody writes, '' at the end."""
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
