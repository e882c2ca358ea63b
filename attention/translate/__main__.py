"""Translate lines with a trained run: `python -m attention.translate runs/numbers < in > out`.

A line that is read becomes a line that is written, also where it is empty. With `--n-best N` there
are up to N lines for each, of four columns that tabulators separate: the number of the line, the
rank from 1, the score and the translation. A score is the log-probability in nats, divided by the
length penalty ((5 + tokens) / 6) ** alpha.
"""

import argparse
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import sacrebleu

from attention.provided.data.tokens import pad
from attention.train import evaluation
from attention.train.command import complain, status_of
from attention.train.core.devices import choose_device
from attention.train.runs.settings import Parser
from attention.train.translate_run import (
    LENGTHS,
    ROWS,
    Run,
    encode,
    open_run,
    rows_at_once,
    save_drawing,
    translate,
    translated,
)
from attention.translate.lines import Line, LinesError, chunks
from attention.translate.n_best import n_best
from attention.translate.score import score
from autograder.terminal_output import replace_what_cannot_be_shown

PROGRAM = "python -m attention.translate"
ENDS = str.maketrans("\n\r\t", "   ")  # what a model might write that is no part of a line


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
    _add_outputs(made)
    return made


def _add_outputs(made: Parser) -> None:
    """Give a parser the options for other outputs than one translation of each line."""
    made.add_argument(
        "--n-best",
        type=int,
        metavar="N",
        help="write up to N translations a line: number of the line, rank, score, translation, "
        "separated by tabulators",
    )
    made.add_argument(
        "--attention",
        metavar="FILE",
        help="draw where the decoder looks in the first line; in every line if FILE has a {} in "
        "its name, for the number of the line",
    )
    made.add_argument(
        "--score",
        type=Path,
        nargs=2,
        metavar=("SOURCE", "REFERENCE"),
        help="translate SOURCE and print BLEU, its signature and the loss instead",
    )
    made.add_argument(
        "--tokenize",
        default=evaluation.TOKENIZE,
        choices=sorted(sacrebleu.BLEU.TOKENIZERS),
        metavar="NAME",
        help="sacrebleu's tokeniser for --score (default: none, as for a training)",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Translate; returns the exit status."""
    replace_what_cannot_be_shown()
    return status_of(PROGRAM, run, parser().parse_args(arguments))


def run(options: argparse.Namespace) -> int:
    """Translate or score with parsed options; returns the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # as what is read
    check(options)
    opened = open_run(options.run, choose_device(options.device))
    options.beam = options.beam or opened.settings["beam"]
    options.alpha = opened.settings["alpha"] if options.alpha is None else options.alpha
    options.max_length = options.max_length or LENGTHS
    for note in opened.notes:
        print(note, file=sys.stderr, flush=True)
    if (options.n_best or 1) > options.beam:
        raise ValueError(
            f"--n-best {options.n_best} needs a --beam of at least as many, not {options.beam}"
        )
    if options.score:
        how = (options.beam, options.alpha, options.max_length, options.tokenize)
        source, reference = options.score
        evaluation.show(score(opened, source, reference, *how))
        return 0
    return translate_all(opened, options)


def check(options: argparse.Namespace) -> None:
    """Raise ValueError, with one sentence, for options that make no sense."""
    for name in ("beam", "n_best", "max_length"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1, not {value}")
    if options.alpha is not None and not 0 <= options.alpha < float("inf"):
        raise ValueError(f"--alpha must be at least 0, not {options.alpha}")
    if options.score and (options.files or options.n_best or options.attention):
        raise ValueError("--score reads its two files only: leave out FILE, --n-best, --attention")


def translate_all(opened: Run, options: argparse.Namespace) -> int:
    """Write the translation of every line that is read; returns the exit status."""
    status, drawn = 0, False
    for part in chunks(options.files):
        if isinstance(part, LinesError):
            raise part
        for start in range(0, len(part), ROWS):
            lines = part[start : start + ROWS]
            read = dict(readable(opened, lines))
            status = max(status, int(None in read.values()))
            found = search(opened, {n: ids for n, ids in read.items() if ids}, options)
            write(lines, found, opened, options.n_best)
            for number in found:
                if options.attention and not (drawn and "{}" not in options.attention):
                    best = found[number][0][1]
                    path = Path(options.attention.replace("{}", str(number)))
                    one = translated(opened, read[number] or [], best)
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


def search(
    opened: Run, read: dict[int, list[int]], options: argparse.Namespace
) -> dict[int, list[tuple[float, list[int]]]]:
    """Scores and ids of the translations of each source, best first; by the number of the line."""
    found: dict[int, list[tuple[float, list[int]]]] = {}
    if not read:
        return found
    how = (options.beam, options.alpha, options.max_length)
    if not options.n_best:
        ids = translate(opened, list(read.values()), *how)
        return {number: [(0.0, one)] for number, one in zip(read, ids, strict=True)}
    numbers, rows = list(read), rows_at_once(list(read.values()))
    for start in range(0, len(numbers), rows):
        some = numbers[start : start + rows]
        source = pad([read[number] for number in some]).to(opened.device)
        found |= zip(some, n_best(opened.model, source, options.n_best, *how), strict=True)
    return found


def write(
    lines: Sequence[Line],
    found: dict[int, list[tuple[float, list[int]]]],
    opened: Run,
    wanted: int | None,
) -> None:
    """Write the translations of some lines to standard output."""
    for line in lines:
        best = found.get(line.number, [])
        texts = [opened.target.decode(ids).translate(ENDS) for _, ids in best]
        if not wanted:
            print(texts[0] if texts else "")
            continue
        for rank, ((value, _), text) in enumerate(zip(best, texts, strict=True), 1):
            print(f"{line.number}\t{rank}\t{value:.4f}\t{text}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
