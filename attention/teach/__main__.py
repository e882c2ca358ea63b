"""Teach a published model with a file of your own: `python -m attention.teach FILE`.

Lesson 21's LowRank learns beside lesson 20's decoder, by the loss on the answers alone;
`python -m attention.chat --lora` answers with what was learned.
"""

import argparse
import math
import shlex
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from attention.modern_decoder import ModernDecoder
from attention.provided.models.decoders import smollm2
from attention.tokens_and_positions import bpe_encode
from attention.train.command import status_of
from attention.train.core import low_rank
from attention.train.core.sampling import check_seed
from attention.train.corpora.texts import decode
from attention.train.runs.settings import Parser
from autograder.terminal_output import readable, replace_what_cannot_be_shown

PROGRAM = "python -m attention.teach"
EVERY = 10  # steps between two lines
LONGEST = 2000  # characters of a line: more would take gigabytes of memory


def parser() -> Parser:
    """The argument parser of the command."""
    made = Parser(
        prog=PROGRAM,
        description="Teach SmolLM2-135M-Instruct, a small published model, with questions and "
        "answers: a low-rank update of its layers learns, and is written to a file for "
        "`python -m attention.chat --lora`.",
    )
    add = made.add_argument
    add(
        "file",
        type=Path,
        metavar="FILE",
        help="a text in UTF-8: in each line a question, a tab, and its answer",
    )
    add(
        "--to",
        type=Path,
        default=Path("lora.safetensors"),
        metavar="FILE",
        help="where the update is written (default: %(default)s)",
    )
    add("--rank", type=int, default=8, help="of the update (default: %(default)s)")
    add("--steps", type=int, default=100, help="how many, 8 examples each (default: %(default)s)")
    add("--rate", type=float, default=4e-3, help="at the first step (default: %(default)s)")
    add("--seed", type=int, default=0, help="of the update and of the order (default: %(default)s)")
    add(
        "--bfloat16",
        action="store_true",
        help="round what is multiplied: quicker where lscpu lists avx512_bf16 or amx_bf16",
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Teach; returns the exit status."""
    replace_what_cannot_be_shown()
    options = parser().parse_args(arguments)
    return status_of(PROGRAM, run, options, "\nstopped: nothing is written")


def run(options: argparse.Namespace) -> int:
    """Teach with parsed options; returns the exit status."""
    check(options)
    lesson, pairs = low_rank.lesson(), read(options.file)
    model, tokens = smollm2.opened(ModernDecoder, bpe_encode)
    torch.manual_seed(options.seed)
    low_rank.insert(model, lesson.LowRank, options.rank)
    count = sum(weight.numel() for weight in low_rank.updates(model).values())
    print(f"{readable(len(pairs))} examples; {readable(count)} numbers learn", flush=True)
    begin = time.monotonic()
    how = (lesson.answer_loss, options.steps, options.rate, options.seed)
    watch(low_rank.teach(model, tokens, pairs, *how, bfloat16=options.bfloat16), options)
    low_rank.save(options.to, model, options.rank)
    name = shlex.quote(str(options.to))
    print(f"taught in {time.monotonic() - begin:.0f} s: python -m attention.chat --lora {name}")
    return 0


def check(options: argparse.Namespace) -> None:
    """Raise ValueError, with one sentence, for options that make no sense."""
    for name in ("rank", "steps"):
        if (value := getattr(options, name)) < 1:
            raise ValueError(f"--{name} must be at least 1, not {value}")
    if not 0 < options.rate < math.inf:
        raise ValueError(f"--rate must be above 0, not {options.rate}")
    check_seed(options.seed)
    if options.to.exists():
        raise ValueError(f"{options.to} is there already: name another file with --to")
    if not options.to.absolute().parent.is_dir():
        raise ValueError(f"{options.to.parent} is no folder: make it, or name a file with --to")


def read(path: Path) -> list[tuple[str, str]]:
    """The questions and answers of a file; ValueError, with the line, for one that is none."""
    pairs = list[tuple[str, str]]()
    for number, line in enumerate(decode(path.read_bytes(), str(path)).split("\n"), start=1):
        if not line.strip():
            continue
        question, *rest = (part.strip() for part in line.split("\t"))
        if len(rest) != 1 or not question or not rest[0]:
            raise ValueError(
                f"{path}, line {number}: it needs a question, one tab, and the question's answer"
            )
        if len(line) > LONGEST:
            raise ValueError(
                f"{path}, line {number}: it has {len(line)} characters, and {LONGEST} are the most"
            )
        pairs.append((question, rest[0]))
    if not pairs:
        raise ValueError(f"{path} is empty: it needs lines of a question, a tab, and its answer")
    return pairs


def watch(losses: Iterable[float], options: argparse.Namespace) -> None:
    """Print the losses of the steps now and then; ValueError if one is no number any more."""
    seen = list[float]()
    for loss in losses:
        seen.append(loss)
        if not math.isfinite(loss):
            raise ValueError(
                f"the loss of step {len(seen)} is no number any more: "
                f"try a --rate below {options.rate}"
            )
        if len(seen) % EVERY == 0 or len(seen) in (1, options.steps):
            mean = statistics.fmean(seen[-EVERY:])
            print(f"step {len(seen)} of {options.steps} · loss {mean:.3f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
