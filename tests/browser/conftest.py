"""Fixtures of the browser tests, which are skipped where there is no Chromium."""

import pytest

from tests import needs
from tests.browser import lab


@pytest.fixture(scope="session")
def browser():
    """Opens pages: ``with browser() as page``."""
    needs.skip_without("playwright")
    needs.skip_without("chromium")
    return lab.browser_page


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
