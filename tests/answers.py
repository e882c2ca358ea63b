"""What the answers to open questions say, and what is recorded for them."""

import json
import re

from attention.experiments.recorded import read
from autograder import ROOT


def said(lesson):
    """The answers of a lesson, by its number, in one line."""
    (path,) = (ROOT / "source").glob(f"{lesson}_*.py")
    summary = r"<summary>(?:Answers|What we found)</summary>"
    found = re.search(summary + r"(.*?)</details>", path.read_text("utf-8"), re.S)
    return " ".join(found[1].replace("#", " ").split())


def recorded(lesson, name, key, place=None, **setting):
    """One result of all full runs of a setting, in the order of the seeds."""
    rows = [
        row
        for row in read(lesson, name)
        if all(row.get(what) == value for what, value in setting.items())
    ]
    return [row[key] if place is None else row[key][place] for row in rows]


def listed(values, digits, last=" and "):
    """The values as a text says them: 0.16, 0.08 and −0.16."""
    *first, end = (f"{value:.{digits}f}".replace("-", "−") for value in values)
    return last.join([", ".join(first), end])


def span(values, digits=0):
    """The least and the largest, as a text says them."""
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def printed(lesson):
    """All that the cells of a lesson print, as its notebook with solutions holds it."""
    (path,) = (ROOT / "solutions").glob(f"{lesson}_*/{lesson}_*.ipynb")
    cells = json.loads(path.read_text("utf-8"))["cells"]
    texts = [out.get("text", "") for cell in cells for out in cell.get("outputs", [])]
    return "".join("".join(text) for text in texts)
