"""Files of weights: what comes back is what was saved, or one sentence."""

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from attention.provided.models import model_file
from attention.provided.models.model_file import ModelFileError


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "weights.safetensors"
    model_file.save(path, {"a": torch.arange(100.0)[::2]}, {"losses": [2.5, 1.0], "über": None})
    return path


def altered(path, metadata=None):
    """Change one weight, or what is said, and keep the rest of the file."""
    with safe_open(path, framework="pt") as stored:
        weights, said = {"a": stored.get_tensor("a")}, stored.metadata()
    weights["a"][3] += 0.001 if metadata is None else 0
    save_file(weights, path, said | (metadata or {}))


def test_what_is_saved_is_loaded(saved):
    weights, about = model_file.load(saved)
    torch.testing.assert_close(weights, {"a": torch.arange(100.0)[::2]}, rtol=0, atol=0)
    assert about == {"losses": [2.5, 1.0], "über": None}
    assert saved.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    "spoil, said",
    [
        (Path.unlink, "is missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:60]), "is damaged"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "is damaged"),
        (lambda path: path.write_bytes(b""), "is damaged"),
        (lambda path: save_file({"a": torch.ones(2)}, path), "is damaged, or no file of this"),
        (altered, "was altered since its training"),
        (lambda path: altered(path, {"about": '{"losses": [0.1]}'}), "was altered since"),
    ],
    ids=["missing", "head cut", "end cut", "empty", "another's", "weights", "what is said"],
)
def test_a_file_that_cannot_be_used_is_one_sentence(saved, spoil, said):
    spoil(saved)
    with pytest.raises(ModelFileError) as caught:
        model_file.load(saved)
    assert str(caught.value).startswith(f"{saved} {said}") and "\n" not in str(caught.value)


def test_weights_return_to_a_model_in_which_two_tables_are_one(tmp_path):
    def tied():
        model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5, bias=False))
        model[1].weight = model[0].weight
        return model

    one, other = tied(), tied()
    weights = model_file.weights_of(one)
    assert list(weights) == ["0.weight"]
    model_file.put(weights, other, tmp_path)
    torch.testing.assert_close(other[1].weight, one[1].weight, rtol=0, atol=0)
    with pytest.raises(ModelFileError, match="holds weights of another model"):
        model_file.put(weights, nn.Linear(3, 5), tmp_path)
