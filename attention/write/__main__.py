"""Write on with a trained language model: `python -m attention.write runs/text --prompt "Emma"`.

The text appears token by token, behind its prompt.
"""

import argparse
import codecs
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
from attention.train.write_run import encode, open_run, write
from autograder.terminal_output import printable, replace_what_cannot_be_shown

PROGRAM = "python -m attention.write"


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
        help="what to go on with (default: nothing, then the text begins as behind the end of a "
        "line)",
    )
    made.add_argument("--length", type=int, default=200, help="tokens at most (default: 200)")
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
    made.add_argument("--seed", type=int, default=0, help="of the draws (default: 0)")
    made.add_argument("--device", help="cuda, mps or cpu (default: the first there is)")
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
        print(printable(note), file=sys.stderr, flush=True)
    how = Sampling(options.temperature, options.top_k, options.top_p, options.seed)
    ids = encode(opened, options.prompt)
    print(printable(options.prompt), end="", flush=True)
    shown = Characters(opened.pieces)
    write(opened, ids, how, options.length, shown.see)
    shown.end()
    return 0


def check(options: argparse.Namespace) -> None:
    """Raise ValueError, with one sentence, for options that make no sense."""
    for name, least in (("length", 1), ("top_k", 0)):
        value = getattr(options, name)
        if value < least:
            raise ValueError(f"--{name.replace('_', '-')} must be at least {least}, not {value}")
    if not 0 <= options.temperature < math.inf:
        raise ValueError(f"--temperature must be at least 0, not {options.temperature}")
    if not 0 < options.top_p <= 1:
        raise ValueError(f"--top-p must be above 0 and at most 1, not {options.top_p}")
    if not 0 <= options.seed < 2**62:
        raise ValueError(f"--seed must be at least 0 and below 2^62, not {options.seed}")


class Characters:
    """Prints tokens as they come: half a character waits for its other half."""

    def __init__(self, pieces: texts.TextPieces):
        self.pieces = pieces
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def see(self, token: int) -> None:
        """Print what is whole with the next token."""
        print(printable(self.decoder.decode(self.pieces.bytes[token])), end="", flush=True)

    def end(self) -> None:
        """End the text; half a character that is left becomes U+FFFD."""
        print(printable(self.decoder.decode(b"", final=True)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
