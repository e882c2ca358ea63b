"""Weights of Llamas, of a Qwen 3 or a Mistral, by their names in transformers, for lesson 20.

`data/llama_outputs.safetensors` holds the random weights of tiny ones, and what transformers makes
of them: the right answers that a model is compared with.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attention.provided.files import ROOT
from attention.provided.models import model_file
from attention.provided.models.model_file import Weights

OUTPUTS = ROOT / "data" / "llama_outputs.safetensors"
KINDS: dict[str, dict[str, Any]] = {  # arguments of a ModernDecoder beside the sizes
    "llama": {"tied": False},
    "llama3": {"tied": False, "base": 500_000.0, "eps": 1e-5},
    "mistral": {"tied": False, "window": 4, "eps": 1e-5},
    "qwen3": {"qk_norm": True, "d_head": 8, "base": 1_000_000.0},
}
TITLES = {"llama": "LLaMA", "llama3": "Llama 3", "mistral": "Mistral", "qwen3": "Qwen 3"}
PADDING = ("none", "left", "right")
TABLE = "model.embed_tokens.weight"
OUTPUT = "lm_head.weight"  # scores the next tokens; of a tied model, in some files, TABLE again
NAMES = {  # a part of a name in the file: that in the model
    "model.embed_tokens.": "embedding.",
    "model.layers.": "layers.",
    "model.norm.": "norm.",
    "lm_head.": "output.",
    "token_embd.": "embedding.",  # from here on: names in a GGUF
    "blk.": "layers.",
    "output_norm.": "norm.",
    ".attn_norm.": ".norm_1.",
    ".ffn_norm.": ".norm_2.",
    ".attn_q.": ".attention.W_q.",
    ".attn_k.": ".attention.W_k.",
    ".attn_v.": ".attention.W_v.",
    ".attn_output.": ".attention.W_o.",
    ".ffn_gate.": ".feed_forward.W_gate.",
    ".ffn_up.": ".feed_forward.W_up.",
    ".ffn_down.": ".feed_forward.W_down.",
    ".input_layernorm.": ".norm_1.",
    ".post_attention_layernorm.": ".norm_2.",
    ".self_attn.q_proj.": ".attention.W_q.",
    ".self_attn.k_proj.": ".attention.W_k.",
    ".self_attn.v_proj.": ".attention.W_v.",
    ".self_attn.o_proj.": ".attention.W_o.",
    ".self_attn.q_norm.": ".attention.norm_q.",
    ".self_attn.k_norm.": ".attention.norm_k.",
    ".mlp.gate_proj.": ".feed_forward.W_gate.",
    ".mlp.up_proj.": ".feed_forward.W_up.",
    ".mlp.down_proj.": ".feed_forward.W_down.",
}


class Stored(NamedTuple):
    """What is known of a tiny model: sizes, weights, and what transformers gives for some ids.

    sizes    the arguments of its ModernDecoder
    weights  by transformers' names
    ids      {one of PADDING: (2, 11) ids, some of them filled up with PAD on that side}
    logits   {one of PADDING: (2, 11, vocab_size)}, which mean nothing where there is padding
    """

    sizes: dict[str, Any]
    weights: Weights
    ids: dict[str, Tensor]
    logits: dict[str, Tensor]


def stored(kind: str, path: Path = OUTPUTS) -> Stored:
    """Read what is stored of one of KINDS; ModelFileError if the file is missing or damaged."""
    tensors, about = model_file.load(path)
    weights = {
        name.removeprefix(f"{kind}/"): weight
        for name, weight in tensors.items()
        if name.startswith(f"{kind}/")
    }
    ids = {side: tensors[f"ids/{side}"] for side in PADDING}
    logits = {side: tensors[f"logits/{kind}/{side}"] for side in PADDING}
    return Stored(about["sizes"] | KINDS[kind], weights, ids, logits)


def load_llama(model: Any, weights: Weights, pair_up: Callable[[Tensor, int], Tensor]) -> Any:
    """Give a ModernDecoder the weights of a published decoder, and no copies; returns the model.

    weights  {name in the file: tensor}
    pair_up  lesson 20's: brings the features of a head into the order that `rotary` turns

    Raises ValueError, with the name, if a weight of the file has no place in the model, if the file
    has none for a place, if a shape differs, or if a tied model's file scores the next tokens by
    another table than its embedding.
    """
    wanted, again = model.state_dict(), weights.get(OUTPUT)
    if again is not None and model.output is None:
        if not torch.equal(again, weights.get(TABLE, again[:0])):
            raise ValueError(f"{OUTPUT} is not {TABLE}: build the model with tied=False")
        weights = {name: weight for name, weight in weights.items() if name != OUTPUT}
    named = {renamed(name): weight for name, weight in weights.items()}
    if strange := named.keys() - wanted.keys():
        raise ValueError(f"{min(strange)} of the file has no place in the model")
    if missing := wanted.keys() - named.keys():
        raise ValueError(f"{min(missing)} of the model is not in the file")
    for name, weight in named.items():
        if weight.shape != wanted[name].shape:
            has, fits = tuple(weight.shape), tuple(wanted[name].shape)
            raise ValueError(f"{name} is {has} in the file, and {fits} in the model")
    model.load_state_dict(_in_pairs(model, named, pair_up), assign=True)
    return model


def renamed(name: str) -> str:
    """A name of transformers, or of a GGUF, as the model has it."""
    return functools.reduce(lambda text, pair: text.replace(*pair), NAMES.items(), name)


def _in_pairs(
    model: nn.Module, weights: Weights, pair_up: Callable[[Tensor, int], Tensor]
) -> Weights:
    """The weights, those of queries and keys and of their norms in the model's order."""
    ordered = dict(weights)
    for place, part in model.named_modules():
        if hasattr(part, "n_kv_heads"):
            heads = {"W_q": part.n_heads, "W_k": part.n_kv_heads, "norm_q": 1, "norm_k": 1}
            for name, count in heads.items():
                full = f"{place}.{name}.weight"
                if full in ordered:
                    ordered[full] = pair_up(ordered[full], count)
    return ordered
