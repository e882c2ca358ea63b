"""Pages that show what students wrote hold a policy, and formgrader's gets names as text."""

import base64
import hashlib
import re

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbconvert.exporters import HTMLExporter
from nbgrader.server_extensions.formgrader import handlers
from traitlets.config import Config

from autograder.course import configure
from autograder.grading.feedback import content_policy
from autograder.reporting import page

NAME = "<img src=x onerror=alert(1)>"


def policy(html):
    """What the policy of a page allows, by directive; it must come before all it holds."""
    head = BeautifulSoup(html, "html.parser").find("meta", {"http-equiv": True})
    assert not head.find_all_previous(["script", "style", "link"])
    parts = (one.split() for one in head["content"].split(";"))
    return {name: allowed for name, *allowed in parts}


def digest(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.fixture
def submission(tmp_path):
    """Formgrader's page of a submission by somebody of a name that is HTML."""
    names = {"template_name": "formgrade", "extra_template_basedirs": [handlers.template_path]}
    exporter = HTMLExporter(config=configure(Config(), tmp_path), **names)
    about = dict.fromkeys(content_policy.NAMES, NAME)
    about |= {"index": 0, "total": 1, "base_url": "", "submission_id": "1", "notebook_id": "00"}
    html, _ = exporter.from_notebook_node(nbformat.v4.new_notebook(), about)
    return html


def test_the_report_allows_nothing_but_its_own_style(tmp_path):
    page.write_html([], tmp_path / "page.html", {}, {})
    html = (tmp_path / "page.html").read_text()
    (style,) = re.findall("<style>(.*?)</style>", html, re.DOTALL)
    none = dict.fromkeys(("default-src", "base-uri", "form-action"), ["'none'"])
    assert policy(html) == {**none, "style-src": [digest(style)]}


def test_formgraders_own_scripts_are_allowed_and_no_others(submission):
    allowed = policy(submission)["script-src"]
    for script in BeautifulSoup(submission, "html.parser").find_all("script"):
        source = script.get("src", "")
        assert (
            digest(script.string or "") in allowed
            or f"'nonce-{script.get('nonce')}'" in allowed
            or source.startswith(content_policy.MATHJAX)
        )
    assert not {"'self'", "'unsafe-inline'", "'unsafe-eval'", "*", "https:"} & set(allowed)
    assert digest("toggle_name(true);") in allowed, "or no name could be shown"


def test_formgrader_shows_a_name_as_text(submission):
    html = BeautifulSoup(submission, "html.parser")
    assert not html.find_all("img")
    assert f"{NAME}, {NAME}" in html.find("a", {"class": "name-shown"}).get_text()


def test_a_page_of_feedback_is_the_same_each_time_and_asks_for_formulas_of_one_place():
    head = "<head><!-- Load mathjax -->old<!-- End of mathjax configuration --></head>"
    held = content_policy.held(head)
    assert held == content_policy.held(head)
    assert "old" not in held
    assert policy(held)["script-src"] == [
        content_policy.MATHJAX,
        digest(content_policy.SETTINGS),
    ]
