"""What the moving figures show of trained models: recorded once, in data/moving_figures.json.

    python -m attention.experiments.moving_figures

makes it again, in about a minute on one core. The figures are in
`attention.provided.figures.moving`.
"""

import json
from collections.abc import Callable
from typing import Any

import torch

from attention.encoders_and_vision import VisionTransformer, blank_each_patch
from attention.experiments import (
    decoding,
    encoders_and_vision,
    kernel_regression,
    masked_attention,
)
from attention.provided.data import digits
from attention.provided.data.tokens import BOS, PAD
from attention.provided.figures.moving import RECORDED
from attention.provided.training_steps import evaluation, one_thread
from attention.train import shipped
from autograder.files import write_aside

ALIGNED = (31, 74, 931, 4547)  # all but the first as lesson 03 draws them
SOURCE, BEFORE = 816, "achthundert"  # what lesson 13 asks its early translator
IMAGES = (0, 1, 2, 3, 4)  # of the test images: those that lesson 16 shows


def bandwidth() -> dict[str, Any]:
    """The river of lesson 01: readings, and the true level every 0.05 h."""
    hours, levels = kernel_regression.river(kernel_regression.SEED)
    truth = kernel_regression.true_level(torch.linspace(0, 6, 121))
    return {"hours": _rounded(hours), "levels": _rounded(levels), "truth": _rounded(truth)}


def crossing() -> list[dict[str, Any]]:
    """Weights of the translator of lesson 03, in thousandths: letters down, words across."""
    model, corpus = shipped.trained("bahdanau_attention")
    pairs = {pair[0]: pair for pair in corpus.train + corpus.test}
    found = []
    for number in ALIGNED:
        _, english, german = pairs[number]
        batch = corpus.batch([pairs[number]])
        with evaluation(model):
            encoded = model.encode(batch.source, batch.lengths)
            weights = model.look_back(*encoded, batch.lengths, batch.target)[1][0]  # (T_q, T_k)
        found.append(
            {
                "words": [*english.split(), "EOS"],
                "letters": [*german, "EOS"],
                "weights": (1000 * weights).round().int().tolist(),
            }
        )
    return found


def masks() -> dict[str, Any]:
    """BigBird's mask as lesson 06 draws it: a string of 0 and 1 for each query."""
    rows = masked_attention.bigbird().int().tolist()
    return {"bigbird": ["".join(map(str, row)) for row in rows]}


def sampling() -> dict[str, Any]:
    """What the early translator of lesson 13 scores after "achthundert" in 816."""
    model, corpus = decoding.early(0)
    letters: list[str] = corpus.target_vocabulary.tokens
    pair = next(pair for pair in corpus.train + corpus.test if pair[0] == SOURCE)
    source = corpus.batch([pair]).source
    read = torch.tensor([[BOS, *(letters.index(letter) for letter in BEFORE)]])
    with evaluation(model):
        mask = (source != PAD).unsqueeze(1)
        logits = model.decode(read, model.encode(source, mask), None, mask)[0, -1]  # (V,)
    names = [letter.strip("<>").upper() if letter[0] == "<" else letter for letter in letters]
    return {"before": BEFORE, "tokens": names, "scores": _rounded(logits)}


def patches() -> list[dict[str, Any]]:
    """Test digits, and the classes' probabilities without each patch, by the model of lesson 16."""
    data = digits.load()
    torch.manual_seed(0)
    model: Any = encoders_and_vision.vision_transformer(VisionTransformer)
    encoders_and_vision.train(model, data.train_images, data.train_labels, seed=0)
    found = []
    for one in IMAGES:
        image, label = data.test_images[one : one + 1], int(data.test_labels[one])
        blanked = blank_each_patch(image, encoders_and_vision.PATCH)[0]  # (N, 1, 8, 8)
        with evaluation(model):
            shares = torch.softmax(model(torch.cat([image, blanked])), dim=1)  # (1 + N, 10)
        ink = (16 * image[0, 0]).round().int().tolist()
        tenths = (10_000 * shares).round().int().tolist()
        found.append({"label": label, "ink": ink, "shares": tenths})
    return found


def _rounded(numbers: torch.Tensor) -> list[float]:
    return [round(number, 4) for number in numbers.tolist()]


def main() -> None:
    """Write the file: one line for each figure."""
    figures: tuple[Callable[[], Any], ...] = (bandwidth, crossing, masks, sampling, patches)
    with one_thread():
        found = {one.__name__: json.dumps(one(), ensure_ascii=False) for one in figures}
    lines = [f'"{name}": {text}' for name, text in found.items()]
    write_aside(RECORDED, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
    print(f"{RECORDED}: {RECORDED.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
