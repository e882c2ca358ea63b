"""Train the writer of English that lesson 15 ships: `data/novelist.safetensors`.

    python -m benchmarks.novelist [--to FILE] [--steps 3000]

It is seed 0 of the recorded experiment “English”, with weights of 16 bits; five minutes on one
core.
"""

import argparse
import sys
from pathlib import Path

import torch

from attention.experiments import language_models as experiments
from attention.language_models import DecoderOnly, language_model_loss
from attention.provided.models import model_file


def main(arguments=None):
    """Train, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=experiments.NOVELIST)
    parser.add_argument("--steps", type=int, default=experiments.LEARNED)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DecoderOnly(256 + experiments.MERGES, **experiments.SIZES)
    experiments.learn_novels(model, language_model_loss, options.steps)
    store(options.to, model_file.weights_of(model), options.steps)
    print(f"written to {options.to}")
    return 0


def store(path, weights, steps):
    """Write the weights with 16 bits, and after how many steps they were taken."""
    weights = {name: weight.half() for name, weight in weights.items()}
    model_file.save(path, weights, {"steps": steps})


if __name__ == "__main__":
    sys.exit(main())
