"""A file of weights: what they are and what is said about them, with a fingerprint of both.

The file is one of safetensors, whose metadata hold `about`, a dict as JSON, and `sha256`.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as packed
from torch import Tensor, nn

from autograder.files import write_aside

Weights = dict[str, Tensor]


class ModelFileError(RuntimeError):
    """A file of weights cannot be used; str() is one sentence that says which and why."""


def save(path: Path, weights: Weights, about: dict[str, Any]) -> None:
    """Write weights, and a dict for JSON about them; OSError, and the old file stays, if it fails.

    Whoever reads the file finds all of the old or all of the new, also after a power failure.
    """
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    said = json.dumps(about)
    metadata = {"about": said, "sha256": fingerprint(weights, said)}
    write_aside(path, packed(weights, metadata), sync=True)


def load(path: Path) -> tuple[Weights, dict[str, Any]]:
    """Return the weights and the dict that `save` wrote.

    Raises ModelFileError if the file is missing or damaged, or holds other weights than it says.
    """
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = file.metadata() or {}
        said = metadata["about"]
        about = json.loads(said)
    except FileNotFoundError:
        raise ModelFileError(f"{path} is missing") from None
    except (SafetensorError, OSError, KeyError, ValueError):
        raise ModelFileError(f"{path} is damaged, or no file of this course") from None
    if metadata.get("sha256") != fingerprint(tensors, said):
        raise ModelFileError(f"{path} was altered since its training")
    return tensors, about


def fingerprint(weights: Weights, said: str) -> str:
    """A SHA-256 of weights and a text: a file shows with it that it is whole."""
    total = hashlib.sha256(said.encode())
    for name in sorted(weights):
        total.update(name.encode() + weights[name].cpu().contiguous().numpy().tobytes())
    return total.hexdigest()


def weights_of(model: nn.Module) -> Weights:
    """The weights of a model, a table that is tied once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


@torch.no_grad()
def put(weights: Weights, model: nn.Module, path: Path) -> None:
    """Copy weights from a file into a model; ModelFileError if they are those of another one."""
    parameters = dict(model.named_parameters())
    if {k: v.shape for k, v in weights.items()} != {k: v.shape for k, v in parameters.items()}:
        raise ModelFileError(f"{path} holds weights of another model: names or sizes differ")
    for name, parameter in parameters.items():
        parameter.copy_(weights[name])
