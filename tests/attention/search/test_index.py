"""The index is kept, and renewed only where a file has changed."""

from pathlib import Path

import pytest
import torch

from attention.search import index as indexes
from attention.search import passages
from attention.search.model import Model


class Recorder(Model):
    """A model that notes which texts become vectors, by a rule that needs no weights."""

    def __init__(self, sum="one"):
        super().__init__("rule", sum, None, None, d_model=2, max_length=64)
        self.asked = []

    def count(self, text):
        return 1

    def vectors(self, texts):
        self.asked += texts
        return torch.tensor([[len(text), 1.0] for text in texts]).view(-1, 2)


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.txt").write_text(f"text of {name}")
    return folder


@pytest.fixture
def renew(tmp_path, notes):
    def renewed(model=None, places=(notes,)):
        model, said = model or Recorder(), []
        found = indexes.renewed(places, tmp_path / "kept" / "index", model, said.append)
        return found, model.asked, said

    return renewed


def texts(found):
    return [one.text for _, one in found.rows]


def test_nothing_is_read_again_that_did_not_change(renew, notes, monkeypatch):
    first, asked, said = renew()
    assert asked == texts(first) == ["text of a", "text of b", "text of c"] and said == []
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} is read"))
    second, asked, said = renew()
    assert asked == said == [] and texts(second) == texts(first)
    assert torch.equal(second.vectors, first.vectors)


def test_only_what_changed_becomes_vectors(renew, notes):
    renew()
    (notes / "b.txt").write_text("another, longer text")
    (notes / "c.txt").unlink()
    (notes / "d.txt").write_text("text of d")
    found, asked, _ = renew()
    assert asked == ["another, longer text", "text of d"]
    assert texts(found) == ["text of a", "another, longer text", "text of d"]
    assert found.vectors[:, 0].tolist() == [len(text) for text in texts(found)]
    assert renew()[1] == []


def test_a_note_is_said_each_time(renew, notes):
    (notes / "b.txt").write_text("a word " + 400 * "=")
    (notes / "c.txt").write_text("")
    for _ in range(2):
        _, _, said = renew()
        assert said == [
            f"{notes / 'b.txt'} has 1 × 300 or more characters without a space: they are left out",
            f"{notes / 'c.txt'} is empty",
        ]


def test_a_copy_is_read_as_the_file_that_it_is(renew, notes):
    text = "# A\n\ntext\n\n# B\n\ntext"
    for names in (("a.txt", "b.md"), ("c.md",)):
        for name in names:
            (notes / name).write_text(text)
        found, _, _ = renew()
    shown = [(Path(file.path).name, one.first) for file, one in found.rows if "#" in one.text]
    assert shown == [("a.txt", 1), ("b.md", 1), ("b.md", 5), ("c.md", 1), ("c.md", 5)]


def test_passages_have_as_many_pieces_as_the_model_counts(renew, notes, monkeypatch):
    monkeypatch.setattr(Recorder, "count", lambda model, text: 30)
    (notes / "a.txt").write_text("one two three four five")
    assert texts(renew()[0])[:3] == ["one two", "three four", "five"]


def test_what_changes_while_it_is_read_is_read_again(renew, notes, monkeypatch):
    real = Path.read_bytes

    def late(path):
        content = real(path)
        path.write_text("and longer now")
        return content

    monkeypatch.setattr(Path, "read_bytes", late)
    renew()
    monkeypatch.undo()
    assert texts(renew()[0]) == 3 * ["and longer now"]


@pytest.mark.parametrize("cut", [0, 100, -1])
def test_a_broken_index_is_made_anew_with_a_sentence(renew, tmp_path, cut):
    renew()
    path = tmp_path / "kept" / "index"
    path.write_bytes(path.read_bytes()[:cut])
    found, asked, said = renew()
    assert len(asked) == len(found.rows) == 3
    assert said == [f"{path} is damaged, or no index: it is made anew"]
    assert renew()[1:] == ([], [])


def test_another_model_makes_it_anew(renew, monkeypatch):
    renew()
    _, asked, (said,) = renew(Recorder("two"))
    assert len(asked) == 3 and "was made by another model or version: it is made anew" in said
    monkeypatch.setattr(passages, "PIECES", 40)
    assert len(renew(Recorder("two"))[1]) == 3


def test_each_set_of_files_and_model_has_an_index_of_its_own():
    a, b = Path("a"), Path("b")
    one, two = Recorder("one"), Recorder("two")
    path = indexes.default_path([a, b], one)
    assert path == indexes.default_path([b, a.absolute()], one)
    assert len({path, indexes.default_path([a], one), indexes.default_path([a, b], two)}) == 3


def test_ctrl_c_keeps_what_was_done_and_what_was_there(renew, notes, monkeypatch):
    (notes / "z.txt").write_text("text of z")
    renew()
    for name in ("a", "b", "c"):
        (notes / f"{name}.txt").write_text(f"new text of {name}")
    monkeypatch.setattr(indexes, "PART", 1)

    class Stopped(Recorder):
        def vectors(self, texts):
            if len(self.asked) == 2:
                raise KeyboardInterrupt
            return super().vectors(texts)

    with pytest.raises(KeyboardInterrupt):
        renew(Stopped())
    monkeypatch.undo()
    found, asked, said = renew()
    assert asked == ["new text of c"] and said == []
    assert texts(found) == [*(f"new text of {name}" for name in "abc"), "text of z"]


def test_an_index_that_cannot_be_kept_is_no_error(renew, tmp_path):
    (tmp_path / "kept").write_text("a file where a folder should be")
    found, _, (said,) = renew()
    assert len(found.rows) == 3 and "the index cannot be kept in" in said


def test_a_broken_file_does_not_stop_the_others(renew, notes):
    (notes / "b.txt").write_bytes(b"\0")
    (notes / "e.ipynb").write_text("{")
    (notes / "f.txt").symlink_to(notes / "nowhere")
    found, _, said = renew()
    assert texts(found) == ["text of a", "text of c"]
    assert said == [
        f"{notes / 'b.txt'} is left out: it is no text in UTF-8",
        f"{notes / 'e.ipynb'} is left out: it is no notebook, or a broken one",
        f"{notes / 'f.txt'} is not there",
    ]
