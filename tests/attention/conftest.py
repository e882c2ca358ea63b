"""Trainings draw no curves, which takes half a second a save, but where a test asks for them."""

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
