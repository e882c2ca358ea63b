"""`python -m attention.chat`: answers as they come, and one sentence for errors."""

import dataclasses
import io
import json
import sys
from pathlib import Path

import pytest

import attention
from attention.chat import __main__ as chat
from attention.chat import mine
from attention.provided.models.decoders import smollm2
from attention.train.pieces import collected
from autograder.pieces import RECORD, Piece
from tests.attention.train.mine.test_mine import yours

LIBRARY = Path(attention.__file__).parent
LESSONS = {
    "masked_attention": ["masked_attention"],
    "tokens_and_positions": ["rotary", "bpe_encode"],
    "decoding": ["sample_tokens", "top_p_filter", "top_k_filter"],
    "modern_decoder": [
        *("rms_norm", "SwiGLU", "ModernAttention", "ModernDecoderLayer", "ModernDecoder"),
        "generate_with_cache",
    ],
    "answers": ["unpack_q4"],
}


def pieces(folder, change):
    """The library's own pieces as a learner's, of which ``change`` may change the text."""
    folder.mkdir()
    found = []
    for lesson, names in LESSONS.items():
        text = (LIBRARY / f"{lesson}.py").read_text(encoding="utf-8")
        (folder / f"{lesson}.py").write_text(change(text), encoding="utf-8")
        found += [dataclasses.asdict(Piece(name, lesson, f"00_{lesson}.ipynb")) for name in names]
    (folder / RECORD).write_text(json.dumps({"pieces": found}))
    return str(folder)


@pytest.fixture
def talk(chat_file, monkeypatch, capsys):
    """A function that runs the command on lines of input; returns its status and what it prints."""

    def run(lines, *words):
        monkeypatch.setattr(smollm2, "read", lambda: chat_file)
        monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
        status = chat.main(["--length", "8", "--temperature", "3", *words])
        return status, *capsys.readouterr()

    return run


def test_each_line_is_answered_until_the_input_ends(talk):
    status, said, wrong = talk("the cat\nthat mat\n")
    assert (status, len(said.strip()) > 10, wrong) == (0, True, "")
    assert talk("the cat\nthat mat\n")[1] == said
    assert talk("the cat\n\nthat mat\n")[1] in said  # an empty line ends it


def test_the_system_and_the_seed_count(talk):
    plain = talk("the cat\n")[1]
    assert talk("the cat\n", "--system", "that mat is there")[1] != plain
    drawn = [talk("the cat\n", "--seed", str(seed))[1] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_ctrl_c_ends_an_answer_and_not_the_conversation(talk, monkeypatch):
    asked, prompt = [], smollm2.prompt

    def told(messages, system):
        asked.append(list(messages))
        return prompt(messages, system)

    def interrupted(run, read, how, length, see):
        see(run.pieces.encode("cat")[0])
        raise KeyboardInterrupt

    monkeypatch.setattr(smollm2, "prompt", told)
    monkeypatch.setattr(chat, "write", interrupted)
    status, said, _ = talk("the cat\nthat mat\n")
    assert (status, said) == (0, "c\nc\n")
    assert asked[1] == [("user", "the cat"), ("assistant", "c"), ("user", "that mat")]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--temperature", "-1"], "--temperature must be at least 0, not -1.0"),
        (["--length", "0"], "--length must be at least 1, not 0"),
        (["--length", "9000"], "begin a new one"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(talk, words, sentence):
    status, _, wrong = talk("the cat\n", *words)
    assert status == 1 and sentence in wrong and "Traceback" not in wrong


def test_a_learners_pieces_answer_the_same(talk, tmp_path):
    plain = talk("the cat\nthat mat\n")[1]
    status, said, wrong = talk("the cat\nthat mat\n", "--mine", pieces(tmp_path / "own", str))
    assert (status, said) == (0, plain)
    assert yours(wrong) == {*mine.NEEDED}
    assert "is used" not in wrong and not collected.placed()


def test_a_wrong_piece_is_named_and_the_librarys_answers(talk, tmp_path):
    folder = pieces(
        tmp_path / "own",
        lambda text: text.replace("F.silu(", "F.relu(").replace(
            "return scale * codes", "raise 3 #"
        ),
    )
    plain = talk("the cat\n")[1]
    _, said, wrong = talk("the cat\n", "--mine", folder)
    assert said == plain
    assert "SwiGLU: with it, the writing gives other results" in wrong
    assert "unpack_q4: it raises TypeError" in wrong and "rms_norm: " not in wrong


def test_without_pieces_it_is_said(talk, tmp_path):
    status, said, wrong = talk("the cat\n", "--mine", str(tmp_path))
    assert (status, said) == (1, "") and "autograder collect" in wrong
