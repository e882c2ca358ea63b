"""The glass page, opened in a browser, and what PyTorch computes for the same texts."""

from contextlib import contextmanager

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


@contextmanager
def watched(model):
    """What goes into and comes out of every module, and the weights: filled while it is open."""
    into, out, hooks = {}, {}, []

    def watch(name, module):
        def after(_, arguments, result):
            into[name] = arguments[0][0]
            out[name] = (result[0] if isinstance(result, tuple) else result)[0]

        hooks.append(module.register_forward_hook(after))

    with watch_attention(model) as weights:
        for name, module in model.named_modules():
            watch(name, module)
        yield into, out, weights
    for hook in hooks:
        hook.remove()


def run_watched(model, source):
    """What goes into and comes out of every module, and the weights, in the greedy translation."""
    read = torch.cat([torch.tensor([[BOS]]), decoding.greedy(model, source)[:, :-1]], dim=1)
    source_mask, target_mask = masks_from_tokens(source, read)
    with watched(model) as (into, out, weights):
        model.decode(read, model.encode(source, source_mask), target_mask, source_mask)
    return into, out, {name: found[0] for name, found in weights.items()}, read


def run_bert(model, ids):
    """The same of the small BERT, for the ids of one text, without the ids."""
    with torch.no_grad(), watched(model) as (into, out, weights):
        model(ids)
    return into, out, {name: found[0] for name, found in weights.items()}
