"""The model of a training: made of its settings, and a Transformer read from its file."""

import os
from pathlib import Path
from typing import Any

from torch import nn

from attention.multi_head_attention import Sublayers
from attention.provided.models.model_file import load, put
from attention.train.corpora.token_ids import Pieces, Vocabulary, vocabulary
from attention.transformer import Transformer

SIZES = ("d_model", "n_heads", "d_ff", "n_layers", "dropout", "pre_norm", "tied")
SHAPES = 16  # of the last products: for each, oneDNN keeps kernels that take up to 3 MiB
WRITERS_SIZES = ("d_model", "n_heads", "n_kv_heads", "d_ff", "n_layers", "qk_norm")


def keep_few_kernels() -> None:
    """Have oneDNN keep the kernels of few shapes, if it has not multiplied yet in this process.

    PyTorch leaves products in bfloat16 on a CPU to it. Almost every batch has a shape of its own,
    and making kernels anew costs little. Variables that are set already stay as they are.
    """
    for capacity in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(capacity, str(SHAPES))


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


def make_writer(settings: dict[str, Any], pieces: Pieces) -> Any:
    """The untrained ModernDecoder of some settings, a dict, for a vocabulary: see `make_model`."""
    from attention.modern_decoder import ModernDecoder  # lesson 20, which not every copy has

    keep_few_kernels()
    sizes = {name: settings[name] for name in WRITERS_SIZES}
    return ModernDecoder(len(pieces), **sizes, window=settings["window"] or None)


def load_model(path: Path) -> tuple[Transformer, Vocabulary, Vocabulary]:
    """Return the model of a run folder's model.safetensors, and its two vocabularies.

    Raises ModelFileError if the file is missing, damaged or altered.
    """
    weights, about = load(path)
    source, target = vocabulary(about["source"]), vocabulary(about["target"])
    model = make_model(about["settings"], source, target)
    put(weights, model, path)
    return model.eval(), source, target
