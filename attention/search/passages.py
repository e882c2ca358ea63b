"""A text is cut into passages, each with its lines: whole paragraphs where they fit.

A passage has at most so many word pieces as its words have one by one.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

PIECES = 120
MOST = 4  # word pieces of one character: three of a Korean syllable, which is three letters
DATA = re.compile(r"[!-~]{300,}")  # no word of any language: a picture in base64, say
_WORD = re.compile(r"\S+")
_MARKDOWN = re.compile(r" {0,3}#{1,6} ")
_DEFINES = re.compile(r"\s*(@|(async )?def |class )")
Count = Callable[[str], int]  # of a word's pieces
Word = tuple[int, int, int]  # its begin and end in a text, and its pieces


@dataclass(frozen=True)
class Passage:
    """A part of a text, and where it is: its first and its last line or cell, from 1."""

    first: int
    last: int
    text: str


def passages(
    text: str, kind: str = "text", pieces: int = PIECES, count: Count = len
) -> Iterator[Passage]:
    """Cut a text into passages; their places are its lines.

    kind    "text", "markdown" or "python": what begins a section, and where it may be cut
    pieces  how many word pieces a passage may have
    count   how many a word has, which is anything without spaces
    """
    lines = DATA.sub("…", text).split("\n")
    starts = [*_sections(lines, kind), len(lines)]
    for begin, end in zip(starts, starts[1:], strict=False):
        section = "\n".join(lines[begin:end])
        words = list(_words(section, pieces, count))
        yield from _cut(section, begin + 1, words, pieces, code=kind == "python")


def _sections(lines: list[str], kind: str) -> Iterator[int]:
    """Where sections begin: at a heading or a definition, unless only such stands before it."""
    yield 0
    fenced, filled = False, False
    for number, line in enumerate(lines):
        if kind == "markdown" and line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        heads = {
            "markdown": not fenced and bool(_MARKDOWN.match(line)),
            "python": bool(_DEFINES.match(line)),
        }.get(kind, False)
        if heads and filled:
            yield number
            filled = False
        filled = filled or bool(line.strip() and not heads)


def _cut(text: str, line: int, words: list[Word], pieces: int, code: bool) -> Iterator[Passage]:
    """Passages of a section that begins at a line; it ends them where it disturbs least.

    That is between paragraphs, then behind a sentence or, in code, a line, then anywhere.
    """
    begin = 0
    while begin < len(words):
        count, end = 0, begin
        while end < len(words) and (end == begin or count + words[end][2] <= pieces):
            count += words[end][2]
            end += 1
        if end < len(words):
            end = _end(text, words, begin, end, code)
        first, last = words[begin][0], words[end - 1][1]
        line += text.count("\n", 0 if begin == 0 else words[begin - 1][1], first)
        passage = text[first:last]
        if passage != "…":  # nothing but data
            yield Passage(line, line + passage.count("\n"), passage)
        line += passage.count("\n")
        begin = end


def _words(text: str, pieces: int, count: Count) -> Iterator[Word]:
    """The words of a text; one that seems to have no end is cut."""
    for found in _WORD.finditer(text):
        begin, last = found.span()
        whole = last - begin <= pieces and count(found[0]) <= pieces
        step = last - begin if whole else max(1, pieces // MOST)
        for place in range(begin, last, step):
            end = min(place + step, last)
            yield place, end, count(text[place:end])


def _end(text: str, words: list[Word], begin: int, end: int, code: bool) -> int:
    """The best end of a passage, words[begin:end] being all that has room."""
    paragraph, sentence = 0, 0
    for place in range(begin + 1, end + 1):
        last, following = words[place - 1][1], words[place][0]
        between = text[last:following]
        if between.count("\n") > 1:
            paragraph = place
        ends = text[last - 1] in ".!?:;" or text[last - 1] == "|" and "\n" in between  # of a table
        if "\n" in between if code else between and ends:
            sentence = place
    if 4 * (paragraph - begin) >= end - begin:
        return paragraph
    return sentence if 2 * (sentence - begin) >= end - begin else end
