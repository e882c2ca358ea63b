"""Talk with a published model in the course's own layers: `python -m attention.chat`.

It is SmolLM2-135M-Instruct, which `autograder data fetch smollm2` fetches. Lesson 20's decoder
computes, lesson 08's byte-pair encoding cuts the texts, lesson 13's filters draw.
"""

import argparse
import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from attention.modern_decoder import ModernDecoder, generate_with_cache
from attention.provided.data.tokens import EOS
from attention.provided.models.decoders import smollm2
from attention.tokens_and_positions import bpe_encode
from attention.train.command import status_of
from attention.train.core.sampling import Sampling
from attention.train.runs.settings import Parser
from autograder.terminal_output import printable, replace_what_cannot_be_shown

PROGRAM = "python -m attention.chat"
ROOM = 8192  # tokens that the model has learned to read
Message = tuple[str, str]


def parser() -> Parser:
    """The argument parser of the command."""
    made = Parser(
        prog=PROGRAM,
        description="Talk with SmolLM2-135M-Instruct, a small published model, in the layers of "
        "lesson 20. An empty line, or the end of the input, ends the conversation; Ctrl-C ends an "
        "answer.",
    )
    made.add_argument(
        "--system", default=smollm2.SYSTEM, metavar="TEXT", help="what the model is told first"
    )
    made.add_argument(
        "--temperature", type=float, default=0.0, help="0: always the best token (default: 0)"
    )
    made.add_argument("--seed", type=int, default=0, help="of the draws (default: 0)")
    made.add_argument("--length", type=int, default=300, help="tokens an answer (default: 300)")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Talk; returns the exit status."""
    replace_what_cannot_be_shown()
    return status_of(PROGRAM, run, parser().parse_args(arguments), "\nstopped")


def run(options: argparse.Namespace) -> int:
    """Talk with parsed options; returns the exit status."""
    if not 0 <= options.temperature < float("inf"):
        raise ValueError(f"--temperature must be at least 0, not {options.temperature}")
    if options.length < 1:
        raise ValueError(f"--length must be at least 1, not {options.length}")
    file = smollm2.read()
    model = smollm2.load(ModernDecoder, file)
    tokens = smollm2.Tokens(file, bpe_encode)
    how = Sampling(options.temperature, top_p=0.9, seed=options.seed)
    messages: list[Message] = []
    while said := _asked():
        messages.append(("user", said))
        show = Shown(tokens)
        with contextlib.suppress(KeyboardInterrupt):
            answer(model, tokens, messages, options.system, how, options.length, show.see)
        show.end()
        messages.append(("assistant", show.text))
    return 0


def _asked() -> str:
    """The next line that somebody writes, '' at the end."""
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return ""


def answer(
    model: Any,
    tokens: smollm2.Tokens,
    messages: Sequence[Message],
    system: str,
    how: Sampling,
    length: int,
    see: Callable[[int], object],
) -> None:
    """Let the model answer the last of the messages; ``see`` is called with each token.

    Raises ValueError if the conversation has become longer than what the model can read.
    """
    read = tokens.encode(smollm2.prompt(messages, system))
    if len(read) + length > ROOM:
        raise ValueError(
            f"the conversation has {len(read)} tokens, and with an answer of {length} it is longer "
            f"than the {ROOM} that the model can read: begin a new one"
        )
    draw = torch.Generator().manual_seed(how.seed + len(messages))

    def choose(scores: Tensor) -> Tensor:
        chosen = how.choose(scores, torch.rand(1, generator=draw))
        if int(chosen) != EOS:
            see(int(chosen))
        return chosen

    generate_with_cache(model, torch.tensor([read]), choose, length)


class Shown:
    """Prints an answer as it comes: half a character waits for its other half."""

    def __init__(self, tokens: smollm2.Tokens) -> None:
        self.tokens, self.ids, self.text = tokens, list[int](), ""

    def see(self, token: int) -> None:
        """Print what is whole with the next token."""
        self.ids.append(token)
        text = self.tokens.decode(self.ids)
        if not text.endswith("\ufffd"):
            print(printable(text[len(self.text) :]), end="", flush=True)
            self.text = text

    def end(self) -> None:
        """End the line."""
        print(flush=True)


if __name__ == "__main__":
    sys.exit(main())
