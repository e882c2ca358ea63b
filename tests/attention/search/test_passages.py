"""Texts are cut where it disturbs least, and every passage knows its lines."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.search.passages import passages

SENTENCE = "One two three four five six seven eight nine. "


def cut(text, kind="text", pieces=120, count=lambda word: 1 + len(word) // 6):
    return list(passages(text, kind, pieces, count))


def test_short_paragraphs_stay_together_with_their_lines():
    (one,) = cut("\n\nFirst line,\nsecond.\n\nAnother.\n\n")
    assert (one.first, one.last, one.text) == (3, 6, "First line,\nsecond.\n\nAnother.")


def test_a_long_text_is_cut_between_paragraphs():
    text = "\n\n".join([SENTENCE * 5] * 4)
    assert [(one.first, one.last) for one in cut(text)] == [(1, 3), (5, 7)]


def test_a_long_paragraph_is_cut_behind_a_sentence():
    found = cut(SENTENCE * 40)
    assert len(found) > 2 and all(one.text.endswith("nine.") for one in found)


@pytest.mark.parametrize(
    ("kind", "text", "firsts"),
    [
        ("markdown", "# A\n\ntext\n\n## B\n\ntext\n\n```sh\n# no heading\n```\n", [1, 5]),
        ("markdown", "# A\n## B\ntext\n", [1]),
        ("python", "import a\n\n\n@b\ndef f():\n    pass\n\n\nclass C:\n    x = 1\n", [1, 4, 9]),
        ("text", "# A\ntext\n# B\ntext", [1]),
    ],
)
def test_a_heading_or_a_definition_begins_a_passage(kind, text, firsts):
    assert [one.first for one in cut(text, kind)] == firsts


def test_data_in_one_line_is_no_passage():
    (one,) = cut(f"before\n{'iVBORw0KGgo' * 99} after\n" + 99 * "漢字")
    assert one.text == "before\n… after\n" + 99 * "漢字" and one.last == 3


@settings(deadline=None)
@given(
    st.text(st.sampled_from("ab .\n#-漢é|"), max_size=400),
    st.sampled_from(["text", "markdown", "python"]),
    st.integers(3, 40),
)
def test_every_word_is_in_one_passage_at_its_lines(text, kind, pieces):
    found = cut(text, kind, pieces)
    lines = text.split("\n")
    assert "".join("".join(one.text for one in found).split()) == "".join(text.split())
    for one in found:
        assert one.text.count("\n") == one.last - one.first
        for number, line in enumerate(one.text.split("\n"), one.first):
            assert line in lines[number - 1]


def test_one_line_of_prose_is_cut_between_words_however_long_it_is():
    found = cut("word and " * 5300, count=len)
    assert len(" ".join(one.text for one in found)) == 47_699
    assert max(len("".join(one.text.split())) for one in found) <= 120
