"""The glass page, opened in a browser, and what PyTorch computes for the same texts."""

import base64
import math
from contextlib import contextmanager

import torch

from attention import decoding
from attention.multi_head_attention import split_heads
from attention.provided.data.tokens import BOS
from attention.provided.models.attention_weights import watch_attention
from attention.transformer import masks_from_tokens

ODD = "thousand thousand two"  # no number: the model is in doubt, and beams differ
CLOSE = {"rtol": 0, "atol": 1e-4}
# Every matrix of a result, by its path in it: rows, columns, and float64 numbers in base64.
FOUND = """
    const packed = x => [x.rows, x.cols, btoa(Array.from(new Uint8Array(x.data.buffer),
        byte => String.fromCharCode(byte)).join(""))];
    const found = {}, walk = (one, path) => {
        if (one === null || typeof one !== "object") return;
        if (one.data instanceof Float64Array) found[path] = packed(one);
        else for (const key of Object.keys(one)) walk(one[key], path ? path + "." + key : key);
    };
"""


def type_in(page, text, field="#number"):
    page.fill(field, text)
    page.press(field, "Enter")


def assert_same(found, wanted):
    """All matrices of FOUND are those of PyTorch, by their paths."""
    assert set(found) == set(wanted)
    for path, (rows, cols, numbers) in found.items():
        shown = torch.frombuffer(bytearray(base64.b64decode(numbers)), dtype=torch.float64)
        shown = shown.view(rows, cols).float()
        torch.testing.assert_close(shown, wanted[path], **CLOSE, msg=lambda m, p=path: f"{p}: {m}")


def explain_every_piece(panel):
    """Choose every piece of a layer: that each says where its numbers come from."""
    for number, piece in enumerate(panel.locator(".pieces button").all_inner_texts()):
        panel.locator(".pieces button").nth(number).click()
        if panel.locator(".heads").count():
            panel.get_by_role("button", name="context").click()
        for key in ("Home", "PageUp", "ArrowRight"):
            panel.locator(".panel canvas[tabindex]").press(key)
        lines = panel.locator(".arithmetic").inner_text().splitlines()
        assert panel.locator(".panel h3").first.inner_text().endswith(piece.splitlines()[0])
        number = lines[0].partition("[0, 1] = ")[2].partition(" ·")[0]
        assert number and any(line.endswith(f"= {number}") for line in lines[1:]), piece


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
    """The same of the small BERT, for the ids of one text."""
    with torch.no_grad(), watched(model) as (into, out, weights):
        model(ids)
    return into, out, {name: found[0] for name, found in weights.items()}, ids


def attention_of(name, seen, n_heads, path):
    """The matrices of one attention, as the page names them."""
    into, out, all_weights, _ = seen
    causal = name.startswith("decoder") and "cross" not in name
    heads = {part: split_heads(out[f"{name}.W_{part}"][None], n_heads)[0] for part in "qkv"}
    context = split_heads(into[f"{name}.W_o"][None], n_heads)[0]
    scores = heads["q"] @ heads["k"].transpose(1, 2)
    scaled = scores / math.sqrt(context.shape[2])
    hidden = torch.ones_like(scores, dtype=torch.bool).triu(1) & causal
    heads |= {"scores": scores, "scaled": scaled, "masked": scaled.masked_fill(hidden, -math.inf)}
    heads |= {"weights": all_weights[name], "context": context}
    found = {f"{path}.heads.{h}.{part}": x[h] for part, x in heads.items() for h in range(n_heads)}
    return found | {f"{path}.merged": into[f"{name}.W_o"], f"{path}.output": out[f"{name}.W_o"]}
