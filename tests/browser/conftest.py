"""Fixtures of the browser tests, which are skipped where there is no Chromium."""

import pytest
import torch

from attention.pages import glass_translator
from attention.provided.training_steps import one_thread
from attention.train import shipped
from tests import needs
from tests.browser import lab


@pytest.fixture(scope="package")
def browser():
    """Opens pages of one Chromium, a new user's each: ``with browser() as page``."""
    needs.skip_without("playwright")
    needs.skip_without("chromium")
    with lab.chromium() as opened:
        yield opened


@pytest.fixture
def course(tmp_path):
    """A copy of the course, so that the checkout stays clean."""
    folder = tmp_path / "course"
    folder.mkdir()
    return lab.copy_course(folder)


@pytest.fixture
def home(tmp_path):
    """A home folder without any Jupyter settings."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def glass_page(browser, tmp_path_factory):
    """The glass page, opened."""
    path = tmp_path_factory.mktemp("glass") / "glass.html"
    glass_translator.write(path)
    with lab.alone(browser, path) as opened:
        yield opened


@pytest.fixture(scope="module")
def glass_model():
    """The model that runs in the glass page, and its corpus."""
    model, corpus = shipped.trained(glass_translator.MODEL)
    with one_thread(), torch.no_grad():
        yield model, corpus
