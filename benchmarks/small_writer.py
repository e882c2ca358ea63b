"""Train the writer of English that lesson 20 ships: `data/modern_decoder.safetensors`.

    python -m benchmarks.small_writer [--to FILE] [--steps 3000] [--rate 6e-3]

It reads what lesson 15's novelist reads, in the same passages, and is stored in the same way, with
its merges; then its bits per character are printed, of the novel to choose by and of the one to
test on.
"""

import argparse
import sys
import time
from pathlib import Path

import torch

from attention.experiments import language_models as experiments
from attention.language_models import language_model_loss
from attention.modern_decoder import ModernDecoder
from attention.provided.data import novels
from attention.provided.models import model_file
from attention.provided.models.decoders import small_writer

RATE = 6e-3


def main(arguments=None):
    """Train, write the file, and measure what it holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=small_writer.PATH)
    parser.add_argument("--steps", type=int, default=experiments.LEARNED)
    parser.add_argument("--rate", type=float, default=RATE)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    started = time.monotonic()
    model = ModernDecoder(small_writer.VOCABULARY, **small_writer.SIZES)
    scores = small_writer.Scores(model)
    experiments.learn_novels(scores, language_model_loss, options.steps, rate=options.rate)
    store(options.to, model, options.steps, options.rate)
    print(f"written to {options.to} after {time.monotonic() - started:.0f} s")
    model_file.put(model_file.load(options.to)[0], model, options.to)  # as it will be used
    for text, title in zip(novels.split()[1:], (novels.CHOOSE, novels.TEST), strict=True):
        print(f"{title}: {experiments.bits_a_character(scores, text):.4f} bits per character")
    return 0


def store(path, model, steps, rate):
    """Write the weights with 16 bits, how they were made, and the merges of the tokens."""
    weights = {name: weight.half() for name, weight in model_file.weights_of(model).items()}
    model_file.save(path, weights, {"steps": steps, "rate": rate, "merges": experiments.merges()})


if __name__ == "__main__":
    sys.exit(main())
