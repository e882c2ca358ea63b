"""A tiny chat model in the form of the published one, which the course does not contain."""

import gguf
import torch

from attention.modern_decoder import ModernDecoder
from attention.provided.data.words import count_words
from attention.provided.models.decoders import llama, smollm2
from attention.tokens_and_positions import train_bpe

SIZES = {"d_model": 64, "n_heads": 2, "n_kv_heads": 1, "d_ff": 96, "n_layers": 2}
SETTINGS = {"base": 500.0, "eps": 1e-5}
SPECIAL = ("<|endoftext|>", smollm2.BEGIN, smollm2.END)
TEXT = "The cat sat on the mat, and that was that. It's 12 o'clock;  the hat isn't there!\n" * 3
KINDS = gguf.GGMLQuantizationType


def write(path, seed=0):
    """Write the file; returns the model whose weights it holds."""
    letters = smollm2._letters()
    merges = train_bpe(*count_words([TEXT]), n_merges=40)
    names = list(letters)
    lines = []
    for left, right in merges:
        lines.append(f"{names[left]} {names[right]}")
        names.append(names[left] + names[right])
    vocabulary = [*SPECIAL, *reversed(names)]  # in another order than the merges
    torch.manual_seed(seed)
    model = ModernDecoder(len(vocabulary), **SIZES, **SETTINGS)
    file = gguf.GGUFWriter(str(path), "llama")
    file.add_block_count(SIZES["n_layers"])
    file.add_embedding_length(SIZES["d_model"])
    file.add_head_count(SIZES["n_heads"])
    file.add_head_count_kv(SIZES["n_kv_heads"])
    file.add_feed_forward_length(SIZES["d_ff"])
    file.add_vocab_size(len(vocabulary))
    file.add_rope_freq_base(SETTINGS["base"])
    file.add_layer_norm_rms_eps(SETTINGS["eps"])
    file.add_token_list(vocabulary)
    file.add_token_types([3] * len(SPECIAL) + [1] * len(names))
    file.add_token_merges(lines)
    theirs = {ours: name for name, ours in llama.NAMES.items() if name in _names()}
    for own, weight in model.state_dict().items():
        name = own
        for ours, renamed in theirs.items():
            name = name.replace(ours, renamed)
        kind = KINDS.F32 if weight.dim() == 1 else KINDS.Q8_0 if "embd" in name else KINDS.Q4_1
        packed = gguf.quants.quantize(weight.numpy(), kind)
        file.add_tensor(name, packed, raw_dtype=kind)
        weight.copy_(torch.tensor(gguf.quants.dequantize(packed, kind)))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
    return model


def _names():
    every = list(llama.NAMES)
    return every[every.index("token_embd.") :]
