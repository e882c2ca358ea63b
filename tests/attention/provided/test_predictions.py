"""What a learner predicts, beside what a demonstration shows."""

import pytest

from attention.provided.predictions import compare


@pytest.mark.parametrize(
    ("prediction", "shown", "said"),
    [
        (None, 0.125, "accuracy: 0.125. (No prediction was made.)"),
        (0.5, 0.45, "accuracy: 0.45. You predicted 0.5."),
        (1, 0.25, "accuracy: 0.25. You predicted 1. That is too large by a factor of 4.0."),
        (0.1, 0.25, "accuracy: 0.25. You predicted 0.1. That is too small by a factor of 2.5."),
        (-1, 0.25, "accuracy: 0.25. You predicted -1."),
        (float("nan"), 0.25, "accuracy: 0.25. You predicted nan."),
        (900, 1000, "accuracy: 1,000. You predicted 900."),
        ("half", 0.25, "accuracy: 0.25. Your prediction is not a number: 'half'"),
        (" b", "B", "accuracy: B. As you predicted."),
        ("A", "B", "accuracy: B. You predicted A."),
        (3, "B", "accuracy: B. You predicted 3."),
    ],
)
def test_one_line_is_printed(capsys, prediction, shown, said):
    compare(prediction, shown, "accuracy")
    assert capsys.readouterr().out == said + "\n"
