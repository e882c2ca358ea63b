"""Lesson 21: what few bits cost, what examples in a prompt do; and what is recorded.

Drafts are in `speculative_decoding`, long texts in `long_texts`, what LoRA learns in `low_rank`.
"""

import copy
import json
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from attention.experiments import long_texts, speculative_decoding
from attention.experiments.language_models import bits_a_character
from attention.experiments.recorded import Experiment, read
from attention.modern_decoder import ModernDecoder, generate_with_cache
from attention.provided.data import novels
from attention.provided.figures import plots, seeds
from attention.provided.files import ROOT
from attention.provided.models.decoders import small_writer, smollm2
from attention.provided.training_steps import fewer
from attention.tokens_and_positions import bpe_encode

Piece = Callable[..., Any]

LESSON, SEEDS = "answers", (0, 1, 2)
BITS = (8, 6, 5, 4, 3, 2)
BLOCKS: dict[str, int | None] = {"32 numbers": 32, "a whole matrix": None}
PARTS = ("layers", "table")
CHARACTERS = 20_000  # of Persuasion, which the small writer has not read
TOKENS = 512  # of Persuasion, for SmolLM2
QUESTION = "What is the capital of France?"


# What few bits cost


def matrices(model: Any, part: str) -> Iterator[Tensor]:
    """The weights of the layers' matrices, or of the table of the embedding."""
    weights = model.layers.parameters() if part == "layers" else [model.embedding.weight]
    return (weight for weight in weights if weight.dim() == 2)


@torch.no_grad()
def rounded(
    model: Any, part: str, bits: int, block: str, quantize: Piece, seed: int | None = None
) -> Any:
    """A copy of a model with one part rounded, blocks running on from row to row.

    seed  None, or that of Gaussian noise which takes the place of the error of rounding: as large
          as this is, in each matrix
    """
    model, generator = copy.deepcopy(model), torch.Generator()
    generator.manual_seed(seed or 0)
    for weight in matrices(model, part):
        row = weight.view(1, -1)
        error = quantize(row, bits, BLOCKS[block] or row.numel()) - row
        if seed is not None:
            noise = torch.randn(row.shape, generator=generator)
            error = noise * error.square().mean().sqrt()
        row += error
    return model


def bits_of(model: Any) -> float:
    """Bits per character of a small writer."""
    return bits_a_character(small_writer.Scores(model), novels.split()[2][:CHARACTERS])


def few_bits(
    part: str, block: str, bits: int, quantize: Piece, seed: int | None = None
) -> dict[str, float]:
    """Bits per character of the small writer with one part rounded, or with noise (a seed)."""
    model = small_writer.load(ModernDecoder)
    found = bits_of(rounded(model, part, bits, block, quantize, seed))
    return {"unrounded": round(bits_of(model), 4), "found": round(found, 4)}


@torch.no_grad()
def rounded_again(bits: int, quantize: Piece, seed: int | None = None) -> dict[str, Any]:
    """Perplexity and an answer of SmolLM2 when its 4 bits are rounded again; 5: as it is."""
    model, tokens = smollm2.opened(ModernDecoder, bpe_encode)
    if bits < 5:
        model = rounded(model, "layers", bits, "32 numbers", quantize, seed)
    ids = torch.tensor([tokens.encode(novels.split()[2][: 8 * TOKENS])[: TOKENS + 1]])
    loss = F.cross_entropy(model(ids[:, :-1])[0][0], ids[0, 1:])
    asked = torch.tensor([tokens.encode(smollm2.prompt([("user", QUESTION)]))])
    new = generate_with_cache(model, asked, lambda scores: scores.argmax(dim=1), 24)
    return {
        "perplexity": round(float(loss.exp()), 2),
        "answer": tokens.decode(new[0].tolist()),
    }


# What the lesson draws and prints


def draw_quantized(quantize: Piece) -> int:
    """Draw what rounding adds to the small writer's loss, against the bits of each stored number.

    Rounded are its layers' matrices, by your function, or its table of the embedding, as recorded.
    Dots are Gaussian noise as large as the error of rounding, three seeds.
    returns  the fewest bits that cost the layers, in blocks of 32, less than 0.01 bits
    """
    model, rows, enough = small_writer.load(ModernDecoder), read(LESSON, "few bits"), max(BITS)
    whole = rows[0]["unrounded"]
    for ax, part in zip(plots.panels(1, 2, width=4.2, height=3.0), PARTS, strict=True):
        for number, (block, size) in enumerate(BLOCKS.items()):
            more = 32 / size if size else 0  # 16 bits for the scale, 16 for the smallest number
            some = seeds.where(rows, part=part, block=block)
            found = {row["bits"]: row["found"] for row in seeds.where(some, seed=None)}
            for bits in BITS[: fewer(len(BITS), 1)] if part == "layers" else ():
                found[bits] = bits_of(rounded(model, part, bits, block, quantize))
            x = [bits + more for bits in found]
            added = [value - whole for value in found.values()]
            (line,) = ax.plot(x, added, seeds.MARKERS[number] + "-", label=block)
            noise = [(row["bits"] + more, row["found"] - whole) for row in some if "seed" in row]
            ax.plot(*zip(*noise, strict=True), ".", color=line.get_color(), alpha=0.6)
            told = "  ".join(f"{bits}: {found[bits]:.3f}" for bits in BITS)
            print(f"{part:7} block of {block:16}{told}")
            if (part, size) == ("layers", 32):
                enough = min(bits for bits in BITS if found[bits] < whole + 0.01)
        ax.axhline(0.0, color=plots.GREY, linestyle="--", linewidth=1)
        ax.set_yscale("symlog", linthresh=0.001)  # the smallest may be negative
        ax.set(title=part, xlabel="bits per number", ylabel="bits per character added")
        plots.legend(ax, fontsize=8)
    return enough


def show_rounded_again() -> None:
    """Print what SmolLM2 predicts and answers when its 4 bits are rounded again, as recorded."""
    for row in read(LESSON, "rounded again"):
        what = "as it is" if row["bits"] == 5 else f"{row['bits']} bits"
        what += f", noise {row['seed']}" if "seed" in row else ""
        answer = " ".join(row["answer"].split())
        print(f"{what:18} perplexity {row['perplexity']:10.1f}   {answer[:60]}")


def draw_prompts() -> dict[str, list[int]]:
    """Draw how many of ten answers SmolLM2 has right, by what stands before, for each seed.

    returns  {kind of prompt: right answers, summed over the tasks, for each seed}
    """
    stored: dict[str, Any] = json.loads((ROOT / "data" / "prompts.json").read_text("utf-8"))
    right = stored["right"] | stored["right too"]
    tasks = [*right["nothing"]]
    for ax, task in zip(plots.panels(1, 3, width=3.0, height=2.4), tasks, strict=True):
        seeds.dots({kind: found[task] for kind, found in right.items()}, ax, task, "right of 10")
        ax.set(xlim=(-0.4, 10.4))
    for kind, found in right.items():
        every = sum(map(sum, stored["of the task"][kind].values()))
        three = "   ".join(" ".join(map(str, found[task])) for task in tasks)
        print(f"{kind:33}{three}   of this kind: {every} of 90")
    return {
        kind: [sum(s) for s in zip(*found.values(), strict=True)] for kind, found in right.items()
    }


def _each(**options: Any) -> list[dict[str, Any]]:
    """All combinations of some settings, as points."""
    return [dict(zip(options, values, strict=True)) for values in product(*options.values())]


ROUNDED = _each(part=PARTS, block=BLOCKS, bits=BITS)
BOTH = (long_texts.SMALL, long_texts.PUBLISHED)

EXPERIMENTS = {
    "few bits": Experiment(
        points=[*ROUNDED, *(point | {"seed": seed} for point in ROUNDED for seed in SEEDS)],
        run=few_bits,
        again={"part": "layers", "block": "32 numbers", "bits": 4},
    ),
    "rounded again": Experiment(
        points=[*_each(bits=(5, 4, 3, 2)), *_each(bits=(3, 2), seed=SEEDS)],
        run=rounded_again,
        again=None,
    ),
    "frequencies": Experiment(
        points=_each(runs=[4000], seed=SEEDS),
        run=speculative_decoding.frequencies,
        again=None,
    ),
    "drafts from counts": Experiment(
        points=_each(k=speculative_decoding.LENGTHS, temperature=(0, 1), seed=SEEDS),
        run=speculative_decoding.small_writer_with_counts,
        again={"k": 8, "temperature": 0, "seed": 0},
    ),
    "copied drafts": Experiment(
        points=_each(answer=speculative_decoding.ASKED, k=speculative_decoding.LENGTHS),
        run=speculative_decoding.smollm2_with_copies,
        again=None,
    ),
    "first token": Experiment(
        points=[
            point
            for model in BOTH
            for point in _each(model=[model], first=long_texts.FIRST[model], seed=SEEDS)
        ],
        run=long_texts.first_token,
        again={"model": long_texts.SMALL, "first": "its own", "seed": 0},
    ),
    "streams": Experiment(
        points=_each(model=BOTH, kept=long_texts.KEPT, seed=SEEDS),
        run=long_texts.stream,
        again={"model": long_texts.SMALL, "kept": "4 others, the last", "seed": 0},
    ),
    "another base": Experiment(
        points=_each(name=long_texts.SETTINGS),
        run=long_texts.with_a_base,
        again={"name": "stretched by 4"},
    ),
}
