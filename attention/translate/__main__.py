"""Translate lines with a trained run: `python -m attention.translate runs/numbers < in > out`.

A line that is read becomes a line that is written, also where it is empty.
"""

import argparse
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from attention.provided.data.tokens import EOS
from attention.train.command import complain, status_of
from attention.train.core.devices import choose_device
from attention.train.runs.settings import Parser
from attention.train.translate_run import (
    LENGTHS,
    ROWS,
    Run,
    encode,
    open_run,
    save_drawing,
    translate,
    translated,
)
from attention.translate.lines import Line, chunks
from autograder.terminal_output import printable, replace_what_cannot_be_shown

PROGRAM = "python -m attention.translate"
CUT = "the translation is cut, for it has no end within its length; --max-length allows for more"
ENDS = str.maketrans("\n\r", "  ")  # what a model might write that is no part of a line


def parser() -> Parser:
    """The argument parser of the command."""
    made = Parser(
        prog=PROGRAM,
        description="Translate lines of text with a training of `python -m attention.train`, also "
        "with one that has not ended. A line that cannot be translated gives an empty line, a "
        "sentence on standard error and, at the end, the exit status 1.",
    )
    made.add_argument("run", type=Path, metavar="RUN", help="folder of a training, or its --export")
    # Without the empty default argparse would say that a file is required.
    made.add_argument(
        "files", type=Path, nargs="*", default=[], metavar="FILE", help="default: standard input"
    )
    made.add_argument("--beam", type=int, help="width of the search (default: the training's)")
    made.add_argument("--alpha", type=float, help="of the length penalty (default: the training's)")
    made.add_argument(
        "--max-length",
        type=int,
        metavar="TOKENS",
        help="of a translation, its end included (default: twice those of the source, and 60)",
    )
    made.add_argument("--device", help="cuda, mps or cpu (default: the first there is)")
    made.add_argument(
        "--attention",
        metavar="FILE",
        help="draw where the decoder looks in the first line; in every line if FILE has a {} in "
        "its name, for the number of the line",
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Translate; returns the exit status."""
    replace_what_cannot_be_shown()
    return status_of(PROGRAM, run, parser().parse_args(arguments))


def run(options: argparse.Namespace) -> int:
    """Translate with parsed options; returns the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # as what is read
    check(options)
    opened = open_run(options.run, choose_device(options.device))
    options.beam = options.beam or opened.settings["beam"]
    options.alpha = opened.settings["alpha"] if options.alpha is None else options.alpha
    options.max_length = options.max_length or LENGTHS
    for note in opened.notes:
        print(printable(note), file=sys.stderr, flush=True)
    return translate_all(opened, options)


def check(options: argparse.Namespace) -> None:
    """Raise ValueError, with one sentence, for options that make no sense."""
    for name in ("beam", "max_length"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1, not {value}")
    if options.alpha is not None and not 0 <= options.alpha < float("inf"):
        raise ValueError(f"--alpha must be at least 0, not {options.alpha}")


def translate_all(opened: Run, options: argparse.Namespace) -> int:
    """Write the translation of every line that is read; returns the exit status."""
    status, drawn = 0, False
    for part in chunks(options.files):
        for start in range(0, len(part), ROWS):
            lines = part[start : start + ROWS]
            encoded = dict(readable(opened, lines))
            status = max(status, int(None in encoded.values()))
            read = {number: ids for number, ids in encoded.items() if ids}
            how = (options.beam, options.alpha, options.max_length)
            best = translate(opened, [*read.values()], *how) if read else []
            found = dict(zip(read, best, strict=True))
            write(lines, found, opened)
            for number, ids in found.items():
                if EOS not in ids:
                    print(f"line {number}: {CUT}", file=sys.stderr)
                if options.attention and not (drawn and "{}" not in options.attention):
                    path = Path(options.attention.replace("{}", str(number)))
                    one = translated(opened, read[number], ids)
                    print(f"line {number}: {save_drawing(one, path)}", file=sys.stderr)
                    drawn = True
    return status


def readable(opened: Run, lines: Sequence[Line]) -> Iterator[tuple[int, list[int] | None]]:
    """Number and ids of each line: [] where it is empty; None, and a sentence, if it is wrong."""
    for line in lines:
        try:
            yield line.number, encode(opened, line.text) if line.text.strip() else []
        except ValueError as error:
            complain(PROGRAM, f"{line.place}: {error}")
            yield line.number, None


def write(lines: Sequence[Line], found: dict[int, list[int]], opened: Run) -> None:
    """Write the translations of some lines, ids by the number of the line, to standard output."""
    for line in lines:
        print(printable(opened.target.decode(found.get(line.number, [])).translate(ENDS)))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
