"""``autograder data``: where the texts come from is said first, and each failure in a sentence."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from attention.commands.data import DATA
from attention.provided import downloads
from attention.provided.models.bert import minilm
from attention.provided.models.decoders import smollm2
from attention.train.corpora import multi30k
from autograder import ROOT
from autograder.commands import cli
from autograder.terminal_output import readable
from tests import small_corpus, small_model
from tests.server import serving
from tests.waiting import LONG, until


@pytest.fixture
def corpus(monkeypatch, tmp_path):
    return small_corpus.use(monkeypatch, tmp_path)


@pytest.fixture
def site(corpus):
    with serving({f"/{name}": text for name, text in corpus[0].items()}) as site:
        yield site


@pytest.fixture
def folder(corpus):
    return corpus[1]


@pytest.fixture
def model(corpus, monkeypatch):
    made = small_model.files()
    small_model.use(monkeypatch, made)
    return made


@pytest.fixture
def says(capsys, folder, monkeypatch):
    """Run ``autograder data`` as in a terminal; returns the exit status and what it said."""
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # another test may have left it

    def run(*words):
        status = cli.main(["data", *words, "--data", str(folder)])
        return status, *capsys.readouterr()

    return run


def test_the_card_lists_every_file_with_its_size_and_sha256():
    card = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\S+)` \| ([\d ]+) \| `([0-9a-f]{64})` \|$", card, re.MULTILINE)
    sources = [one.source for one in DATA.values()]
    assert {name: (int(size.replace(" ", "")), sha256) for name, size, sha256 in rows} == {
        name: (file.size, file.sha256) for one in sources for name, file in one.files.items()
    }
    assert all(one.command() in card for one in sources)
    assert multi30k.COMMIT in card
    for source in (minilm.SOURCE, smollm2.SOURCE):
        assert source.package.replace("==", "` ") in card
        assert source.home.partition("/resolve/")[0] in card


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is not a git checkout")
def test_nothing_that_can_be_fetched_is_in_the_repository():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    names = {Path(path).name.removesuffix(".gz") for path in listed.stdout.splitlines()}
    assert names & {file for one in DATA.values() for file in one.source.files} == set()


def test_nothing_heavy_is_imported():
    """The command answers at once."""
    code = "import sys, attention.commands.data; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_fetch_says_what_the_texts_are_and_brings_them(says, site, folder, corpus):
    status, out, err = says("fetch", "multi30k", "--mirror", site.address)
    assert (status, err) == (0, "")
    origin, rest = out.split("\n\n")
    assert "Elliott" in origin and "https://github.com/multi30k/dataset" in origin
    assert "Flickr30k" in origin and "non-commercial research and education" in origin
    assert len(origin.splitlines()) <= 4
    lines = rest.splitlines()
    assert lines[:-1] == [
        f"{name}: fetched, {readable(len(text))} bytes" for name, text in corpus[0].items()
    ]
    assert lines[-1] == f"all 12 texts are in {folder}"
    assert says("fetch", "multi30k")[0] == 0  # nothing is asked for, so no mirror is needed
    assert len(site.asked) == 12


def test_list_says_what_is_whole(says, site, folder):
    status, out, err = says("list", "multi30k")
    assert (status, err) == (0, "")
    assert out.count("missing") == 12
    assert out.splitlines()[-1].endswith(f": autograder data fetch multi30k --data {folder}")
    says("fetch", "multi30k", "--mirror", site.address)
    (folder / "train.en").write_bytes(b"altered")
    (folder / "train.de").unlink()
    (folder / "val.en").unlink()
    (folder / "val.en").mkdir()
    lines = says("list", "multi30k")[1].splitlines()
    assert lines[0] == f"multi30k, in {folder}:"
    states = {line.split()[0]: line.split()[-1] for line in lines[1:13]}
    assert states.pop("train.en") == "altered"
    assert states.pop("train.de") == "missing"
    assert states.pop("val.en") == "unreadable"
    assert set(states.values()) == {"whole"}


def test_list_says_all_that_can_be_fetched(capsys, folder, model, monkeypatch):
    monkeypatch.setattr(downloads, "ROOT", folder.parent)
    assert cli.main(["data", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    cache = folder.parent / ".cache"
    assert lines[0] == f"multi30k, in {cache / 'multi30k'}:"
    assert lines[13:15] == [
        "fetch what is not whole with: autograder data fetch multi30k",
        f"minilm, in {cache / 'minilm'}:",
    ]
    assert [line.split()[0] for line in lines[15:17]] == ["model.safetensors", "vocab.txt"]
    assert lines[17] == "fetch what is not whole with: autograder data fetch minilm"
    assert lines[-1] == "fetch what is not whole with: autograder data fetch smollm2"


def test_a_failure_is_one_sentence_and_status_1(says, site):
    site.files["/val.en"] = b"wrong"
    status, out, err = says("fetch", "multi30k", "--mirror", site.address)
    assert status == 1
    assert err.count("\n") == 1 and err.startswith(f"{site.address}/val.en is not the file")
    assert out.splitlines()[-1].startswith("train.de: fetched")


@pytest.mark.parametrize("words", [[], ["fetch"], ["fetch", "wmt14"], ["lst"]])
def test_other_words_are_refused_with_the_usage(words, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["data", *words])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: autograder data")


# A process that was started in the background of a shell may ignore SIGINT.
INTERRUPTIBLE = """
import signal, sys
from autograder import ROOT
from autograder.commands import cli
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(cli.main())
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals")
def test_an_interrupt_leaves_nothing_half(site, folder):
    """The real list of files is in use here: what comes is stopped before it is compared."""
    site.files["/train.en"] = bytes(100_000)
    site.plan = ["stall"]
    words = ["data", "fetch", "multi30k", "--mirror", site.address, "--data", str(folder)]
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: site.asked or process.poll() is not None, "the command to ask for a text")
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=LONG)[1]
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, err) == (130, "stopped\n")
    assert list(folder.iterdir()) == []
