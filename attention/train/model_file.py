"""A trained Transformer in a file: its weights, and the settings and vocabularies they need."""

import dataclasses

from attention.provided.files import fingerprint
from attention.train.corpora import vocabulary
from attention.train.download import DataError
from attention.train.run_folder import load
from attention.transformer import Transformer

SIZES = ("d_model", "n_heads", "d_ff", "n_layers", "dropout", "pre_norm", "tied")


def make_model(settings, source, target):
    """The untrained Transformer of some settings, a dict, for two vocabularies."""
    sizes = {name: settings[name] for name in SIZES}
    return Transformer(len(source), len(target), **sizes, fused=True)


def about_model(weights, settings, pairs):
    """What a file of weights has to say of them: a dict for json."""
    return {
        "settings": dataclasses.asdict(settings),
        "source": pairs.source.description(),
        "target": pairs.target.description(),
        "sha256": fingerprint(weights),
    }


def load_model(path):
    """Return the model of a run folder's model.safetensors, and its two vocabularies.

    Raises DataError if the file is missing, damaged, or holds other weights than it says.
    """
    weights, about = load(path)
    if about.get("sha256") != fingerprint(weights):
        raise DataError(f"{path} was altered since its training")
    source, target = vocabulary(about["source"]), vocabulary(about["target"])
    model = make_model(about["settings"], source, target)
    put(weights, model)
    return model.eval(), source, target


def weights_of(model):
    """The weights as {name: tensor}, a tied table once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def put(weights, model):
    """Copy weights from `weights_of` into a model; DataError if they are those of another one."""
    parameters = weights_of(model)
    if {k: v.shape for k, v in weights.items()} != {k: v.shape for k, v in parameters.items()}:
        raise DataError("the stored weights are those of a model of other sizes")
    for name, parameter in parameters.items():
        parameter.copy_(weights[name])
