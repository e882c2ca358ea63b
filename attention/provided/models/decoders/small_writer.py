"""The writer of English that lesson 20 ships: a small decoder of today, and how its text is cut.

Its file holds the merges of its tokens, too: whoever reads it needs nothing else to write with it.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from attention.provided.files import ROOT
from attention.provided.models import model_file
from attention.provided.models.translators import made_again

PATH = ROOT / "data" / "modern_decoder.safetensors"
MADE_BY = "python -m benchmarks.small_writer"
VOCABULARY = 256 + 768  # bytes and merges
SIZES: dict[str, Any] = {
    "d_model": 128,
    "n_heads": 4,
    "n_kv_heads": 2,
    "d_ff": 344,  # 2/3 of 512, rounded up to a multiple of 8
    "n_layers": 3,
    "qk_norm": True,
}


def load(ModernDecoder: Callable[..., Any]) -> Any:
    """A ModernDecoder with the stored weights, to be used and not to be trained.

    Raises ModelFileError if the file is missing, damaged, altered, or of another model.
    """
    model = ModernDecoder(VOCABULARY, **SIZES)
    with made_again(MADE_BY):
        model_file.put(model_file.load(PATH)[0], model, PATH)
    return model.eval()


def read() -> tuple[model_file.Weights, dict[str, Any]]:
    """The stored weights, of 16 bits, and {"steps", "rate", "merges"}; raises as `load` does."""
    with made_again(MADE_BY):
        return model_file.load(PATH)


class Scores(nn.Module):
    """A model that gives scores and its cache, without the cache: as a `DecoderOnly` is called."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Tensor:
        """Score what follows each token: (B, T) -> (B, T, vocab_size)."""
        scores: Tensor = self.model(tokens)[0]
        return scores
