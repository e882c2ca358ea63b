"""Store what transformers gives for tiny decoders: `data/llama_outputs.safetensors`.

    python -m benchmarks.llama_outputs [--to FILE]

A decoder of each kind of `KINDS`, its weights drawn from a seed: logits of the same ids without
padding, and with padding on the left and on the right of the second row. Lesson 20's decoder is
compared with them. It needs transformers, `pip install -e '.[peers]'`.
"""

import argparse
import sys
from importlib.metadata import version
from pathlib import Path

import torch

from attention.provided.data.tokens import PAD
from attention.provided.models import model_file
from attention.provided.models.decoders.llama import KINDS, OUTPUTS, PADDING

SIZES = {"vocab_size": 50, "d_model": 24, "n_heads": 4, "n_kv_heads": 2, "d_ff": 20, "n_layers": 2}
T, PADDED = 11, 4  # tokens of a text, and how many of the second are left out with padding


def main(arguments=None):
    """Run the models in transformers, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=OUTPUTS)
    options = parser.parse_args(arguments)
    ids, tensors = drawn_ids(), {}
    for seed, kind in enumerate(KINDS):
        model = decoder(kind, SIZES)
        draw(model, seed)
        for name, weight in model.named_parameters():
            tensors[f"{kind}/{name}"] = weight.detach().clone()
        for side in PADDING:
            tensors[f"logits/{kind}/{side}"] = logits(model, ids[side])
    tensors |= {f"ids/{side}": some for side, some in ids.items()}
    about = {"sizes": SIZES, "transformers": version("transformers")}
    model_file.save(options.to, tensors, about)
    print(f"written to {options.to}")
    return 0


def decoder(kind, sizes, options=None):
    """Return transformers' model of a kind, of sizes as a ModernDecoder takes them.

    options  the other arguments of the ModernDecoder; None: those of KINDS
    """
    from transformers import (
        LlamaConfig,
        LlamaForCausalLM,
        MistralConfig,
        MistralForCausalLM,
        Qwen3Config,
        Qwen3ForCausalLM,
    )

    build, config = {
        "llama": (LlamaForCausalLM, LlamaConfig),
        "llama3": (LlamaForCausalLM, LlamaConfig),
        "qwen3": (Qwen3ForCausalLM, Qwen3Config),
        "mistral": (MistralForCausalLM, MistralConfig),
    }[kind]
    options = KINDS[kind] if options is None else options
    window = {"sliding_window": options["window"]} if "window" in options else {}
    made = config(
        vocab_size=sizes["vocab_size"],
        hidden_size=sizes["d_model"],
        num_attention_heads=sizes["n_heads"],
        num_key_value_heads=sizes["n_kv_heads"],
        head_dim=options.get("d_head", sizes["d_model"] // sizes["n_heads"]),
        intermediate_size=sizes["d_ff"],
        num_hidden_layers=sizes["n_layers"],
        rms_norm_eps=options.get("eps", 1e-6),
        rope_parameters={"rope_type": "default", "rope_theta": options.get("base", 10000.0)},
        tie_word_embeddings=options.get("tied", True),
        pad_token_id=PAD,
        bos_token_id=None,
        eos_token_id=None,
        **window,
    )
    return build(made).eval()


@torch.no_grad()
def draw(model, seed):
    """Give a model random weights; those of norms lie around 1."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        numbers = torch.randn(parameter.shape, generator=generator)
        parameter.copy_(1 + 0.3 * numbers if "norm" in name else 0.3 * numbers)


def drawn_ids():
    """Ids of two texts (2, T) for each side of PADDING."""
    draw = torch.Generator().manual_seed(1)
    ids = torch.randint(3, SIZES["vocab_size"], (2, T), generator=draw)
    left, right = ids.clone(), ids.clone()
    left[1, :PADDED], right[1, -PADDED:] = PAD, PAD
    return {"none": ids, "left": left, "right": right}


@torch.inference_mode()
def logits(model, ids):
    """What the model says, (B, T, vocab_size), with 0 in the places of padding."""
    real = ids != PAD
    scores = model(ids, attention_mask=real.long(), use_cache=False).logits
    return scores * real.unsqueeze(-1)


if __name__ == "__main__":
    sys.exit(main())
