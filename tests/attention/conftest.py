"""Fixtures of the tests of downloads: a server with a text, and the download of that text."""

import pytest

from tests.downloads import PACKED, TEXT, Download
from tests.server import serving


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with serving({"/text": TEXT, "/text.gz": PACKED}) as site:
        yield site


@pytest.fixture
def get(site, tmp_path):
    return Download(site, tmp_path / "new")
