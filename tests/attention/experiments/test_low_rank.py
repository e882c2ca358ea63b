"""The numbers that the chat model is taught, what is measured of it, and what is drawn."""

import pytest

from attention.answers import LowRank, answer_loss
from attention.experiments import low_rank as experiments
from attention.modern_decoder import ModernDecoder
from attention.provided.models.decoders import smollm2
from attention.tokens_and_positions import bpe_encode
from tests import small_chat_model


@pytest.fixture
def small(chat_file, monkeypatch):
    """A tiny model in place of the published one."""
    monkeypatch.setattr(smollm2, "read", lambda: chat_file)
    monkeypatch.setattr(experiments, "LAYERS", {"SwiGLU of the last layer": 1})


def test_what_is_kept_out_is_not_taught():
    learn, choose, test = map(set, experiments.split())
    assert (len(choose), len(test)) == (40, 40)
    assert not (choose & test or learn & choose or learn & test)
    assert ("In German: twenty one", "einundzwanzig") in experiments.spelled([*learn, 21])


def test_exchanged_answers_are_the_same_ones_elsewhere():
    pairs = experiments.spelled(experiments.split()[0])
    other = experiments.exchanged(pairs, seed=0)
    assert sorted(answer for _, answer in other) == sorted(answer for _, answer in pairs)
    assert [question for question, _ in other] == [question for question, _ in pairs]
    assert sum(one == two for one, two in zip(pairs, other, strict=True)) < 10


def test_questions_are_answered_together_as_alone(small):
    model, tokens = smollm2.opened(ModernDecoder, bpe_encode)
    questions = ["the cat", "o'clock, and that was that"]
    together = experiments.answers(model, tokens, questions)
    assert together == [experiments.answers(model, tokens, [one])[0] for one in questions]


def test_each_arm_teaches_what_it_names(small, monkeypatch):
    monkeypatch.setattr(experiments, "STEPS", 10)
    found = {
        arm: experiments.taught(arm, 0.01, 0, LowRank, answer_loss)
        for arm in [*experiments.RANKS, *experiments.LAYERS]
    }
    sizes = small_chat_model.SIZES
    learned = {arm: row["learned"] for arm, row in found.items()}
    assert learned["LoRA, rank 8"] == 8 * learned["LoRA, rank 1"]
    assert learned["SwiGLU of the last layer"] == 3 * sizes["d_model"] * sizes["d_ff"]
    true, other = (found[f"LoRA, rank 8{more}"]["losses"] for more in ("", ", answers exchanged"))
    assert true != other
    assert found["LoRA, rank 8"]["test"] == 0.0  # ten steps teach a tiny model nothing


def test_the_record_says_what_the_figure_shows(capsys):
    shares = experiments.draw_teaching()
    assert {len(found) for found in shares.values()} == {3}
    assert max(shares["LoRA, rank 8, answers exchanged"]) < min(shares["LoRA, rank 8"])
    experiments.show_other_answers()
    assert capsys.readouterr().out.count("    before  ") == len(experiments.OTHERS)
