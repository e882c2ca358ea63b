"""What lesson 16 says of handwritten digits, for three seeds: ``make bench-digits``.

    python -m benchmarks.digits [--to FILE] [--seeds 0 1 2] [--only NAME …] [--epochs 40]

Every model learns the same 1 438 images of scikit-learn and is tested on the same 359. The split
never changes; a seed draws first weights, dropout and batches. One thread, which is fastest for
matrices as small as these and adds in the same order each time. The file holds the settings, the
parameters and the share of test images that is right for each model and seed, and what is left of
the vision Transformer's share when one patch of every test image is blanked.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
from torch import nn

from attention.encoders_and_vision import (
    VisionTransformer,
    blank_each_patch,
    patchify,
)
from attention.experiments import encoders_and_vision as experiments
from attention.experiments.encoders_and_vision import PATCH, SIZES, correlation
from attention.provided.data import digits
from attention.provided.files import ROOT
from attention.provided.measuring.occlusion import occlusion_map
from attention.provided.models.attention_weights import watch_attention

RANDOM = 20  # how often a random patch is drawn for each image


def vision_transformer(patch=PATCH):
    """The model of the lesson."""
    return experiments.vision_transformer(VisionTransformer, patch)


def without_positions():
    """The same, with positions that are and stay 0."""
    model = vision_transformer()
    table = model.classifier.positions.table
    table.requires_grad_(False).zero_()
    return model


def without_neighbours():
    """Two hidden layers on all pixels at once."""
    layers = nn.Linear(64, 192), nn.ReLU(), nn.Linear(192, 192), nn.ReLU(), nn.Linear(192, 10)
    return nn.Sequential(nn.Flatten(), *layers)


# name: how the model is made, and the side of the pieces of all images that are shuffled, or 0
NETWORKS = {
    "MLP": (without_neighbours, 0),
    "CNN": (experiments.cnn, 0),
    "CNN, patches shuffled": (experiments.cnn, PATCH),
    "CNN, pixels shuffled": (experiments.cnn, 1),
    "ViT, patches of 4 × 4": (lambda: vision_transformer(4), 0),
    "ViT": (vision_transformer, 0),
    "ViT, patches shuffled": (vision_transformer, PATCH),
    "ViT, no positions": (without_positions, 0),
}
LOGISTIC = "logistic regression"


def logistic_regression(data):
    """Parameters, and the share of test images that scikit-learn's logistic regression gets right.

    It draws nothing at random.
    """
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=5000)
    model.fit(data.train_images.flatten(1).numpy(), data.train_labels.numpy())
    right = model.score(data.test_images.flatten(1).numpy(), data.test_labels.numpy())
    return model.coef_.size + model.intercept_.size, right


def trained(name, data, seed, epochs):
    """The trained network, and the share of test images that it gets right."""
    make, shuffled = NETWORKS[name]
    train, test = data.train_images, data.test_images
    if shuffled:
        train, test = (digits.shuffle_patches(images, shuffled) for images in (train, test))
    torch.manual_seed(seed)
    model = make()
    experiments.train(model, train, data.train_labels, epochs, seed, f"{name}, seed {seed}")
    return model, experiments.accuracy(model, test, data.test_labels)


def cls_attention(model, images):
    """What the extra token looks at in the last layer, mean of the heads: (B, N)."""
    with watch_attention(model) as seen, torch.no_grad():
        model(images)
    last = list(seen.values())[-1]  # (B, H, 1 + N, 1 + N)
    return last[:, :, 0, 1:].mean(dim=1)


def looked_at(model, data, seed):
    """Shares right with one patch blank, and correlations, of what marks out patches."""
    images, labels = data.test_images, data.test_labels
    attention, ink = cls_attention(model, images), patchify(images, PATCH).sum(dim=-1)
    blanked, every = blank_each_patch(images, PATCH), torch.arange(len(images))
    drop = occlusion_map(model, images, labels, blanked)
    draw = torch.Generator().manual_seed(seed)
    chance = [torch.randint(ink.shape[1], (len(ink),), generator=draw) for _ in range(RANDOM)]
    left = {
        "nothing": [images],
        "a random one": [blanked[every, patches] for patches in chance],
        "most attended": [blanked[every, attention.argmax(dim=1)]],
        "most ink": [blanked[every, ink.argmax(dim=1)]],
        "largest drop": [blanked[every, drop.argmax(dim=1)]],
    }
    shares = {
        name: sum(experiments.accuracy(model, some, labels) for some in sets) / len(sets)
        for name, sets in left.items()
    }
    pairs = {
        "attention and ink": correlation(attention, ink),
        "attention and drop": correlation(attention, drop),
        "ink and drop": correlation(ink, drop),
    }
    return shares, pairs


def measure(names, seeds, epochs):
    """Everything that the file holds, as a dict."""
    data, rows, left, pairs = digits.load(), {}, {}, {}
    if LOGISTIC in names:
        parameters, right = logistic_regression(data)
        rows[LOGISTIC] = {"parameters": parameters, "right": [round(right, 4)]}
    for name in NETWORKS:
        for seed in seeds if name in names else ():
            model, right = trained(name, data, seed, epochs)
            count = sum(p.numel() for p in model.parameters() if p.requires_grad)
            row = rows.setdefault(name, {"parameters": count, "right": []})
            row["right"].append(round(right, 4))
            print(f"{name:<26} {count:7,} parameters   seed {seed}: {right:.4f}", flush=True)
            if name == "ViT":
                for kept, found in zip((left, pairs), looked_at(model, data, seed), strict=True):
                    for key, value in found.items():
                        kept.setdefault(key, []).append(round(value, 4))
    settings = {"seeds": list(seeds), "epochs": epochs, "batch": experiments.BATCH, "patch": PATCH}
    settings["learning_rate"] = experiments.LEARNING_RATE
    settings["torch"] = torch.__version__.split("+")[0]
    settings |= {"train": len(data.train_images), "test": len(data.test_images), **SIZES}
    return {
        "command": "python -m benchmarks.digits",
        "settings": settings,
        "models": rows,
        "right with one patch blank": left,
        "correlation": pairs,
    }


def main(arguments=None):
    """Measure, print, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=ROOT / "data" / "digits.json")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=experiments.EPOCHS)
    parser.add_argument("--only", nargs="+", choices=[LOGISTIC, *NETWORKS], metavar="NAME")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    found = measure(options.only or [LOGISTIC, *NETWORKS], options.seeds, options.epochs)
    options.to.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written to {options.to}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
