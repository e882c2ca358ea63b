"""The settings of a training: presets, limits, and errors that name the option."""

import pytest

from attention.train.runs.settings import PRESETS, Settings, stored


@pytest.mark.parametrize("corpus", PRESETS)
def test_every_preset_is_accepted(corpus):
    Settings(corpus=corpus, **PRESETS[corpus]).check()


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"steps": 0}, "--steps must be at least 1, not 0"),
        ({"dropout": 1.0}, "--dropout must be below 1.0, not 1.0"),
        ({"learning_rate": 0.0}, "--learning-rate must be above 0.0, not 0.0"),
        ({"learning_rate": float("nan")}, "--learning-rate must be above 0.0, not nan"),
        ({"learning_rate": float("inf")}, "--learning-rate must be finite, not inf"),
        ({"alpha": float("inf")}, "--alpha must be finite, not inf"),
        ({"dtype": "half"}, "--dtype must be one of auto, float32, bfloat16, not 'half'"),
        ({"tied": "all"}, "--tied all needs a joint vocabulary"),
        ({"d_model": 12, "n_heads": 5}, "12 is no multiple of 10"),
        ({"steps": 10, "warmup": 11}, "--warmup 11 is longer than --steps 10"),
    ],
)
def test_a_wrong_value_is_named_with_its_option(wrong, says):
    with pytest.raises(ValueError) as error:
        Settings(**wrong).check()
    assert says in str(error.value)


def test_the_config_of_another_version_is_one_sentence():
    with pytest.raises(ValueError, match="another version of this program.*'colour'") as error:
        stored({"corpus": "numbers", "colour": 1})
    assert "\n" not in str(error.value)
