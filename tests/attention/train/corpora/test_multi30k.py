"""Multi30k: fetched once, verified at every reading, and mended when it was altered."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attention.provided.downloads import DownloadError, NoConnection, NotThere
from attention.train.corpora import multi30k
from attention.train.corpora.multi30k import CorpusError, fetch, load
from autograder.terminal_output import readable
from tests import small_corpus
from tests.server import serving

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def corpus(monkeypatch, tmp_path):
    return small_corpus.use(monkeypatch, tmp_path)


@pytest.fixture
def texts(corpus):
    return corpus[0]


@pytest.fixture
def folder(corpus):
    return corpus[1]


@pytest.fixture
def repository(texts, monkeypatch):
    with serving(small_corpus.as_repository(texts)) as site:
        monkeypatch.setattr(multi30k, "ORIGIN", site.address)
        yield site


def put(folder, texts):
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_bytes(text)


def quietly(*_):
    pass


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is not a git checkout")
def test_no_text_of_the_corpus_is_in_the_repository():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    names = {Path(path).name.removesuffix(".gz") for path in listed.stdout.splitlines()}
    assert names & set(multi30k.FILES) == set()


def test_nothing_heavy_is_imported():
    """The command that lists the texts answers at once, and lessons may be graded without data."""
    code = "import sys, attention.train.corpora.multi30k; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# Reading


@pytest.mark.parametrize("tokenised", [True, False])
@pytest.mark.parametrize(("split", "n"), small_corpus.SENTENCES.items())
def test_load_splits_at_line_ends_only(texts, folder, split, n, tokenised):
    put(folder, texts)
    english = load(split, "en", tokenised, folder)
    german = load(split, "de", tokenised=tokenised, folder=folder)
    assert len(english) == len(german) == n
    kind = ".lc.norm.tok" if tokenised else ""
    assert english[3] == f"en 3 grün\u2028und\u0085blau {split}{kind}.en ."
    assert german[3] == f"de 3 grün\u2028und\u0085blau {split}{kind}.de ."


FETCH = "with autograder data fetch multi30k --data "
SPOILT = {
    "missing": (Path.unlink, f"val.en is not in {{folder}}: fetch it {FETCH}"),
    "altered": (lambda path: path.write_bytes(b"E" + path.read_bytes()[1:]), f"mend it {FETCH}"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:-1]), f"mend it {FETCH}"),
    "unreadable": (lambda path: path.unlink() or path.mkdir(), "val.en cannot be read: Is a dir"),
}


@pytest.mark.parametrize("how", SPOILT)
def test_what_cannot_be_used_says_how_it_is_fetched(texts, folder, how, monkeypatch):
    put(folder, texts)
    spoil, says = SPOILT[how]
    spoil(folder / "val.en")
    assert multi30k.state("val.en", folder) == ("altered" if how == "cut" else how)
    with pytest.raises(CorpusError, match=re.escape(says.format(folder=folder))):
        load("val", "en", tokenised=False, folder=folder)
    monkeypatch.setattr(multi30k, "FOLDER", folder)  # the usual folder needs no option
    if how != "unreadable":
        with pytest.raises(CorpusError, match="with autograder data fetch multi30k$"):
            load("val", "en", tokenised=False, folder=folder)


@pytest.mark.parametrize("wanted", [("test", "en"), ("train", "fr"), ("../train", "en")])
def test_texts_that_multi30k_does_not_have(folder, wanted):
    with pytest.raises(CorpusError, match=r"has no text called .*; there are: train.en, train.de"):
        load(*wanted, folder=folder)


# Fetching


def test_fetch_brings_every_text_and_the_second_time_asks_for_nothing(repository, texts, folder):
    said = []
    fetch(folder, say=said.append)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == texts
    assert len(repository.asked) == len(said) == 12
    assert said[0] == f"train.en: fetched, {readable(len(texts['train.en']))} bytes"
    said.clear()
    fetch(folder, say=said.append)
    assert said == [f"{name}: there already" for name in texts]
    assert len(repository.asked) == 12
    assert len(load("train", "de", folder=folder)) == 60


def test_only_some_texts(repository, folder):
    fetch(folder, names=["val.de", "val.lc.norm.tok.en"], say=quietly)
    assert sorted(path.name for path in folder.iterdir()) == ["val.de", "val.lc.norm.tok.en"]
    with pytest.raises(CorpusError, match="has no text called val.fr"):
        fetch(folder, names=["val.fr"], say=quietly)


def test_fetch_mends_what_was_altered(repository, texts, folder):
    put(folder, texts)
    (folder / "val.en").write_bytes(b"altered")
    (folder / "train.de").unlink()
    fetch(folder, say=quietly)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == texts
    assert repository.asked == [
        "/data/task1/raw/train.de.gz",
        "/data/task1/raw/val.en.gz",
    ]


@pytest.mark.parametrize("end", ["", "/"])
@pytest.mark.parametrize("layout", ["flat", "flat and unpacked", "as the repository"])
def test_mirrors(texts, folder, layout, end, monkeypatch):
    monkeypatch.setattr(multi30k, "ORIGIN", "http://nobody.invalid")
    files = {
        "flat": small_corpus.as_mirror(texts),
        "flat and unpacked": {f"/{name}": text for name, text in texts.items()},
        "as the repository": small_corpus.as_repository(texts),
    }[layout]
    with serving(files) as site:
        fetch(folder, site.address + end, say=quietly)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == texts


def test_a_mirror_without_the_files(texts, folder):
    with serving({}) as site, pytest.raises(NotThere) as raised:
        fetch(folder, site.address, say=quietly)
    assert str(raised.value).startswith(f"{site.address} has none of train.en.gz, train.en, data/")
    assert str(raised.value).endswith("or leave out --mirror to ask the repository itself")


@pytest.mark.parametrize(("plan", "wrong"), [([404], NotThere), ([503] * 4, NoConnection)])
def test_a_repository_without_the_files_or_the_network(
    repository, folder, monkeypatch, plan, wrong
):
    monkeypatch.setattr(time, "sleep", quietly)
    repository.plan = plan
    with pytest.raises(wrong, match="name a copy of the files with --mirror URL"):
        fetch(folder, say=quietly)


def test_a_mirror_with_a_wrong_file_is_not_believed(texts, folder):
    files = small_corpus.as_mirror(texts)
    files["/val.en.gz"] = files["/val.de.gz"]
    with serving(files) as site, pytest.raises(DownloadError, match="/val.en.gz is not the file"):
        fetch(folder, site.address, say=quietly)
    assert sorted(path.name for path in folder.iterdir()) == ["train.de", "train.en"]
