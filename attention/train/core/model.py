"""The model of a training: made of its settings, and a Transformer read from its file."""

from pathlib import Path
from typing import Any

from torch import nn

from attention.multi_head_attention import Sublayers
from attention.provided.models.model_file import load, put
from attention.train.corpora.token_ids import Pieces, Vocabulary, vocabulary
from attention.train.speed.onednn_products import keep_few_kernels
from attention.transformer import Transformer

SIZES = ("d_model", "n_heads", "d_ff", "n_layers", "dropout", "pre_norm", "tied")
WRITERS_SIZES = ("d_model", "n_heads", "n_kv_heads", "d_ff", "n_layers", "qk_norm")


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
