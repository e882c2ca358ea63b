"""Vectors are kept, and only those of new texts are made."""

from pathlib import Path

import pytest
import torch

from attention.search import index
from attention.search.model import Model


class Recorder(Model):
    """A model that notes which texts become vectors, by a rule that needs no weights."""

    def __init__(self, sum="one"):
        super().__init__("rule", sum, None, None, d_model=2, max_length=64)
        self.asked = []

    def vectors(self, texts):
        self.asked += texts
        return torch.tensor([[len(text), 1.0] for text in texts])


@pytest.fixture
def vectors(tmp_path):
    def made(*texts, model=None):
        model, said = model or Recorder(), []
        found = index.vectors(texts, tmp_path / "kept" / "index", model, said.append)
        assert found.tolist() == [[len(text), 1.0] for text in texts]
        return model.asked, said

    return made


def test_only_new_texts_become_vectors(vectors):
    assert vectors("a", "bb", "ccc") == (["a", "bb", "ccc"], [])
    assert vectors("ccc", "a") == ([], [])
    assert vectors("a", "dddd") == (["dddd"], [])
    assert vectors("bb") == (["bb"], [])  # what is no longer there is not kept


def test_another_model_makes_all_anew(vectors):
    vectors("a", "bb")
    assert vectors("a", "bb", model=Recorder("two"))[0] == ["a", "bb"]


@pytest.mark.parametrize("cut", [0, 100, -1])
def test_a_damaged_index_is_made_anew(vectors, tmp_path, cut):
    vectors("a", "bb")
    path = tmp_path / "kept" / "index"
    path.write_bytes(path.read_bytes()[:cut])
    assert vectors("a", "bb") == (["a", "bb"], [])
    assert vectors("a", "bb") == ([], [])


def test_each_set_of_files_and_model_has_an_index_of_its_own():
    a, b = Path("a"), Path("b")
    one, two = Recorder("one"), Recorder("two")
    path = index.path_of([a, b], one)
    assert path == index.path_of([b, a.absolute()], one)
    assert len({path, index.path_of([a], one), index.path_of([a, b], two)}) == 3


def test_ctrl_c_keeps_what_was_done_and_what_was_there(vectors, monkeypatch):
    vectors("a")
    monkeypatch.setattr(index, "PART", 1)

    class Stopped(Recorder):
        def vectors(self, texts):
            if len(self.asked) == 2:
                raise KeyboardInterrupt
            return super().vectors(texts)

    with pytest.raises(KeyboardInterrupt):
        vectors("bb", "ccc", "dddd", model=Stopped())
    assert vectors("a", "bb", "ccc", "dddd")[0] == ["dddd"]


def test_an_index_that_cannot_be_kept_is_no_error(vectors, tmp_path):
    (tmp_path / "kept").write_text("a file where a folder should be")
    _, (said,) = vectors("a")
    assert said.startswith(f"the index cannot be kept in {tmp_path}")
