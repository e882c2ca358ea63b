"""The small stand-in for lesson 19's published model: same architecture, same names of weights.

It was trained for this course on the docstrings of lesson 15: `python -m benchmarks.small_bert`.
"""

from torch import Tensor

from attention.provided.files import ROOT
from attention.provided.models import model_file

PATH = ROOT / "data" / "small_bert.safetensors"
N_HEADS = 4


def read_weights() -> dict[str, Tensor]:
    """Return the weights by the names that a published BERT has for them, float32.

    Raises ModelFileError if the file is missing, damaged or altered.
    """
    weights, _ = model_file.load(PATH)
    return {name: weight.float() for name, weight in weights.items()}  # stored with 16 bits


def read_vocabulary() -> list[str]:
    """Return the word pieces, in the order of their ids.

    Raises ModelFileError if the file is missing, damaged or altered.
    """
    _, about = model_file.load(PATH)
    return list(about["vocabulary"])
