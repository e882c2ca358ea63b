"""The glass page, opened in a browser, and what PyTorch computes for the same sources."""

import torch

from attention import decoding
from attention.provided.data.tokens import BOS
from attention.provided.models.attention_weights import watch_attention
from attention.transformer import masks_from_tokens

ODD = "thousand thousand two"  # no number: the model is in doubt, and beams differ


def type_in(page, text):
    page.fill("#number", text)
    page.press("#number", "Enter")


def source_of(text, corpus):
    return torch.tensor([corpus.source_vocabulary.encode(text.split())])


def run_watched(model, source):
    """What goes into and comes out of every module, and the weights, in the greedy translation."""
    into, out, hooks = {}, {}, []
    read = torch.cat([torch.tensor([[BOS]]), decoding.greedy(model, source)[:, :-1]], dim=1)

    def watch(name, module):
        def after(_, arguments, result):
            into[name] = arguments[0][0]
            out[name] = (result[0] if isinstance(result, tuple) else result)[0]

        hooks.append(module.register_forward_hook(after))

    source_mask, target_mask = masks_from_tokens(source, read)
    with watch_attention(model) as weights:
        for name, module in model.named_modules():
            watch(name, module)
        model.decode(read, model.encode(source, source_mask), target_mask, source_mask)
    for hook in hooks:
        hook.remove()
    return into, out, {name: found[0] for name, found in weights.items()}, read
