"""Trainings draw no curves, half a second a save, but where a test asks; and a tiny chat model."""

import pytest

from attention.train.runs.run_folder import RunFolder

DRAW = RunFolder.draw


@pytest.fixture(scope="module", autouse=True)
def undrawn():
    """Before any other fixture of a module begins a training."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "draw", lambda *_: None)
        yield


@pytest.fixture
def drawn(monkeypatch):
    """The curves are drawn in this test."""
    monkeypatch.setattr(RunFolder, "draw", DRAW)


@pytest.fixture(scope="session")
def chat_file(tmp_path_factory):
    """The open file of a tiny chat model, in the form of the published one's."""
    from attention.provided.models import gguf
    from attention.provided.models.decoders import smollm2
    from tests import small_chat_model

    path = tmp_path_factory.mktemp("chat_model") / smollm2.NAME
    small_chat_model.write(path)
    return gguf.GGUF(path)
