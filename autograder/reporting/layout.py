"""How our pages look: the templates in ``pages/``, which escape all text, and their one style."""

import html
import re
from pathlib import Path
from typing import Any

import jinja2

from autograder.grading.feedback import content_policy

PAGES = Path(__file__).parent / "pages"
STYLE = (PAGES / "style.css").read_text(encoding="utf-8")


def page(template: str, title: str, **content: Any) -> bytes:
    """The page that a template of ``pages/`` makes of this content, which it escapes."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PAGES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    policy = content_policy.of_page(STYLE)
    made = environment.get_template(template)
    return made.render(title=title, style=STYLE, policy=policy, **content).encode()


def _breakable(name: str) -> str:
    """A name as HTML that may be broken between its words, so that its column stays narrow."""
    return re.sub(r"(?<=_)(?=.)|(?<=[a-z])(?=[A-Z])", "<wbr>", html.escape(name))
