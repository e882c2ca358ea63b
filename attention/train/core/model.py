"""The Transformer of a training: made of its settings, and read from its file."""

import dataclasses
from pathlib import Path
from typing import Any

from torch import nn

from attention.multi_head_attention import Sublayers
from attention.provided.models.model_file import load, put
from attention.train.corpora.token_ids import Pairs, Vocabulary, vocabulary
from attention.train.runs.settings import Settings
from attention.train.speed.onednn_products import keep_few_kernels
from attention.transformer import Transformer

SIZES = ("d_model", "n_heads", "d_ff", "n_layers", "dropout", "pre_norm", "tied")


def make_model(settings: dict[str, Any], source: Vocabulary, target: Vocabulary) -> Transformer:
    """The untrained Transformer of some settings, a dict, for two vocabularies.

    Every training and translation, also with a student's pieces, begins with it: from now on this
    process keeps few of oneDNN's kernels.
    """
    keep_few_kernels()
    sizes = {name: settings[name] for name in SIZES}
    made = Transformer(len(source), len(target), **sizes, fused=True)
    if not settings.get("drop_hidden", True):  # which files of earlier versions do not say
        for module in made.modules():
            if isinstance(module, Sublayers):
                module.feed_forward.dropout = nn.Dropout(0.0)
    return made


def about_model(settings: Settings, pairs: Pairs) -> dict[str, Any]:
    """What a file of weights has to say so that `load_model` can read it: a dict for JSON."""
    return {
        "settings": dataclasses.asdict(settings),
        "source": pairs.source.description(),
        "target": pairs.target.description(),
    }


def load_model(path: Path) -> tuple[Transformer, Vocabulary, Vocabulary]:
    """Return the model of a run folder's model.safetensors, and its two vocabularies.

    Raises ModelFileError if the file is missing, damaged or altered.
    """
    weights, about = load(path)
    source, target = vocabulary(about["source"]), vocabulary(about["target"])
    model = make_model(about["settings"], source, target)
    put(weights, model, path)
    return model.eval(), source, target
