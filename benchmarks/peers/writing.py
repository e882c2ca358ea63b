"""Lesson 20's decoder writes: the course's, and `generate` of transformers with a Llama.

Both have the same weights, keep keys and values, and take the best token each time. The weights are
random. What they write has to agree.
"""

import torch

from attention.modern_decoder import generate_with_cache
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.train.speed.cached_decoder import CachedDecoder
from benchmarks.peers import modern
from benchmarks.peers.racing import Contestant

TEXTS, LENGTH = (1, 8), 48  # side by side, and how many tokens each gets
PROMPT = 32  # tokens
NEVER = (PAD, BOS, EOS)


def prompts(size, texts, device="cpu"):
    """Random beginnings, (texts, PROMPT)."""
    draw = torch.Generator().manual_seed(0)
    shape = (texts, PROMPT)
    return torch.randint(len(NEVER), size["vocab_size"], shape, generator=draw).to(device)


def best_word(scores):
    """The best token that a text may have, (B,): scores (B, vocab_size)."""
    return scores[:, len(NEVER) :].argmax(dim=1) + len(NEVER)


def make(name, size, texts, length=LENGTH, device="cpu"):
    """Write on behind all prompts as one unit of work; returns the new ids as lists."""
    ids, model = prompts(size, texts, device), modern.course(size).eval()
    modern.draw(model)
    if name != "transformers, generate":
        model.to(device)
        writer = CachedDecoder(model) if name == "course" else model
        return lambda: generate_with_cache(writer, ids, best_word, length).tolist()
    llama = modern.Llama(**size)
    llama.take(model)
    inner = llama.inner.to(device).eval()
    options = {"max_new_tokens": length, "do_sample": False, "suppress_tokens": [*NEVER]}
    options |= {"attention_mask": torch.ones_like(ids), "use_cache": True}

    def run():
        with torch.inference_mode():
            return inner.generate(ids, **options)[:, PROMPT:].tolist()

    return run


CONTESTANTS = [
    Contestant("course", make),
    Contestant("the lesson's parts", make),
    Contestant("transformers, generate", make, "transformers"),
]
