"""Store what transformers' BertModel gives for lesson 19: `data/transformers_outputs.safetensors`.

    python -m benchmarks.transformers_outputs [--to FILE]

For the published model and the small stand-in, each sentence of the lesson and each layer, the
first 16 numbers of every vector. It needs transformers, `pip install -e '.[peers]'`, and the
published model, `autograder data fetch minilm`.
"""

import argparse
import sys
from importlib.metadata import version
from pathlib import Path

import torch

from attention.experiments.published_model import FEATURES, TRANSFORMERS
from attention.provided.data.sentences import SENTENCES
from attention.provided.data.tokens import PAD
from attention.provided.models import model_file
from attention.provided.models.bert import files
from attention.provided.models.bert.tokenizer import WordPieceTokenizer
from attention.published_model import UNUSED, wordpiece


def main(arguments=None):
    """Run both models in transformers, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=TRANSFORMERS)
    options = parser.parse_args(arguments)
    both = {files.PUBLISHED: files.published(), files.SMALL: files.small()}
    outputs = {name: hidden_states(file)[..., :FEATURES] for name, file in both.items()}
    model_file.save(options.to, outputs, {"transformers": version("transformers")})
    print(f"written to {options.to}")
    return 0


def hidden_states(file):
    """What the embeddings give, then each layer: (n_layers + 1, B, T, d_model)."""
    ids = WordPieceTokenizer(file.vocabulary, wordpiece).batch(SENTENCES)
    model = bert_model(file.sizes)
    named = {name: w for name, w in file.weights.items() if not name.startswith(UNUSED)}
    model.load_state_dict(named)
    with torch.inference_mode():
        result = model(ids, attention_mask=(ids != PAD).long(), output_hidden_states=True)
    return torch.stack(result.hidden_states)


def bert_model(sizes):
    """Return transformers' model of these sizes, as a `PublishedEncoder` takes them."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=sizes["vocab_size"],
        max_position_embeddings=sizes["max_length"],
        hidden_size=sizes["d_model"],
        num_attention_heads=sizes["n_heads"],
        intermediate_size=sizes["d_ff"],
        num_hidden_layers=sizes["n_layers"],
        hidden_act="gelu",
        layer_norm_eps=1e-12,
    )
    return BertModel(config, add_pooling_layer=False).eval()


if __name__ == "__main__":
    sys.exit(main())
