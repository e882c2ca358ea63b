"""Write on with a trained language model: `python -m attention.write runs/text --prompt "Emma"`.

The text appears token by token, behind its prompt.
"""

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from attention.provided.models.decoders import smollm2
from attention.train.command import status_of
from attention.train.core.devices import choose_device
from attention.train.core.sampling import Sampling, add_options, check
from attention.train.runs.settings import Parser
from attention.train.write_run import Characters, encode, open_run, published, write
from autograder.terminal_output import printable, replace_what_cannot_be_shown

PROGRAM = "python -m attention.write"


def parser() -> Parser:
    """The argument parser of the command."""
    made = Parser(
        prog=PROGRAM,
        description="Let a language model of `python -m attention.train text` go on with a prompt, "
        "also one whose training has not ended. Each token is read once: keys and values are kept.",
    )
    made.add_argument(
        "run", type=Path, nargs="?", metavar="RUN", help="folder of a training, or its --export"
    )
    made.add_argument(
        "--model",
        choices=[smollm2.SOURCE.name],
        help="in place of RUN, a published model: `autograder data fetch` gets it",
    )
    made.add_argument(
        "--prompt",
        default="",
        metavar="TEXT",
        help="what to go on with (default: nothing, then the text begins as behind the end of a "
        "line)",
    )
    add_options(made, length=200, temperature=0.8)
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
    if (options.run is None) == (options.model is None):
        raise ValueError("say either a RUN or a --model, with which it is written")
    device = choose_device(options.device)
    opened = published(device) if options.model else open_run(options.run, device)
    for note in opened.notes:
        print(printable(note), file=sys.stderr, flush=True)
    how = Sampling(options.temperature, options.top_k, options.top_p, options.seed)
    ids = encode(opened, options.prompt)
    print(printable(options.prompt), end="", flush=True)
    shown = Characters(opened.pieces)
    write(opened, ids, how, options.length, shown.see)
    shown.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
