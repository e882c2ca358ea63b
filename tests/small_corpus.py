"""A made-up corpus in place of Multi30k's texts, which the course does not contain."""

import hashlib

from attention.provided.downloads import File
from attention.train.corpora import multi30k

SENTENCES = {"train": 60, "val": 4, "test_2016_flickr": 5}


def texts():
    """A small text under each of the names in Multi30k."""
    made = {}
    for name in multi30k.SOURCE.files:
        split, language = name.split(".")[0], name.rpartition(".")[2]
        numbers = range(SENTENCES[split])
        # U+2028 and U+0085 are line separators elsewhere, but belong to the sentence here.
        lines = [f"{language} {number} grün\u2028und\u0085blau {name} .\n" for number in numbers]
        made[name] = "".join(lines).encode()
    return made


def use(monkeypatch, tmp_path):
    """Let Multi30k be the small corpus, in an empty folder; returns the texts and the folder."""
    made = texts()
    files = {
        name: File(len(made[name]), _sha256(made[name]), file.path)
        for name, file in multi30k.SOURCE.files.items()
    }
    monkeypatch.setattr(multi30k.SOURCE, "files", files)
    monkeypatch.setenv("no_proxy", "*")
    return made, tmp_path / "multi30k"


def _sha256(content):
    return hashlib.sha256(content).hexdigest()
