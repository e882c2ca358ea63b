"""What can be set for `python -m attention.train`, and what is wrong with a value."""

import argparse
import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from attention.transformer import TIED

DTYPES = ("auto", "float32", "bfloat16")
TRANSFORMER, MODERN = MODELS = ("transformer", "modern")  # lesson 10's, and lesson 20's


def setting(default: Any, says: str, of: str = "", **limits: float) -> Any:
    """Describe a setting: its default, meaning and limits, and `of` which model alone it is."""
    said = {"says": f"{of}: {says}" if of else says, "of": of, "limits": limits}
    return dataclasses.field(default=default, metadata=said)


@dataclass
class Settings:
    """The settings of one training; `check` refuses values that make no sense."""

    corpus: str = setting("numbers", "numbers, multi30k or text")
    model: str = setting(TRANSFORMER, "modern, which is for text, or transformer, for the others")
    merges: int = setting(4000, "merges of the vocabulary of multi30k or text", low=0)
    d_model: int = setting(128, "length of the vectors", low=2)
    n_heads: int = setting(4, "heads of each attention", low=1)
    d_ff: int = setting(256, "hidden units of the feed-forward networks", low=1)
    n_layers: int = setting(2, "layers of the encoder, and of the decoder", low=1)
    n_kv_heads: int = setting(2, "heads of keys and values", MODERN, low=1)
    qk_norm: bool = setting(False, "queries and keys are normalised", MODERN)
    window: int = setting(0, "how many tokens one sees, itself included; 0: all", MODERN, low=0)
    length: int = setting(256, "tokens of a passage", MODERN, low=2)
    dropout: float = setting(0.1, "probability of dropout", TRANSFORMER, low=0.0, below=1.0)
    drop_hidden: bool = setting(
        True, "dropout of the feed-forward networks' hidden units, too", TRANSFORMER
    )
    pre_norm: bool = setting(True, "LayerNorm before the sublayers", TRANSFORMER)
    tied: str = setting("none", f"which tables are one: {', '.join(TIED)}", TRANSFORMER)
    steps: int = setting(1000, "how many steps to take", low=1)
    max_tokens: int = setting(4096, "tokens of a batch on its longer side, padding included", low=1)
    accumulate: int = setting(1, "batches of each step", low=1)
    learning_rate: float = setting(3e-3, "the highest", above=0.0)
    warmup: int = setting(400, "the step at which the learning rate is highest", low=1)
    smoothing: float = setting(0.1, "of the labels", TRANSFORMER, low=0.0, below=1.0)
    weight_decay: float = setting(0.0, "of AdamW, of biases and norms, too", low=0.0)
    beta2: float = setting(0.98, "of AdamW: memory of the squared gradients", low=0.0, below=1.0)
    max_norm: float = setting(1.0, "gradients are shortened to this norm", above=0.0)
    every: int = setting(200, "steps between two evaluations, each followed by a save", low=1)
    average: int = setting(5, "how many of the last saves make the final weights", low=1)
    beam: int = setting(5, "width of the beam search at the end", TRANSFORMER, low=1)
    alpha: float = setting(1.0, "exponent of the length penalty", TRANSFORMER, low=0.0)
    judged: int = setting(
        0, "sentences of each split to translate at the end; 0: all", TRANSFORMER, low=0
    )
    seed: int = setting(0, "of the weights, the order and the dropout", low=0)
    dtype: str = setting("auto", f"of the matrix products: {', '.join(DTYPES)}")
    compile: bool = setting(False, "compile the layers")

    def check(self) -> None:
        """Raise ValueError, with one sentence, for the first value that makes no sense."""
        for field in dataclasses.fields(self):
            _check_limits(field, getattr(self, field.name))
        choices = {"model": MODELS, "dtype": DTYPES, "tied": TIED}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{option(name)} must be one of {', '.join(allowed)}, "
                    f"not {getattr(self, name)!r}"
                )
        if self.model != PRESETS[self.corpus].get("model", TRANSFORMER):
            raise ValueError(
                f"--model {self.model} is not for {self.corpus}: leave out --model, or train with "
                f"{'numbers or multi30k' if self.model == TRANSFORMER else 'text'}"
            )
        if self.d_model % (2 * self.n_heads):
            raise ValueError(
                f"--d-model must be a multiple of 2 times --n-heads: {self.d_model} is no multiple "
                f"of {2 * self.n_heads}"
            )
        if self.tied == "all" and self.corpus == "numbers":
            raise ValueError("--tied all needs a joint vocabulary, which the numbers do not have")
        if self.model == MODERN and self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"--n-heads must be a multiple of --n-kv-heads: {self.n_heads} is no multiple of "
                f"{self.n_kv_heads}"
            )
        if self.model == MODERN and self.max_tokens < self.length:
            raise ValueError(f"--max-tokens {self.max_tokens} is less than --length {self.length}")
        if self.warmup > self.steps:
            raise ValueError(
                f"--warmup {self.warmup} is longer than --steps {self.steps}: choose a shorter one"
            )


PRESETS: dict[str, dict[str, Any]] = {
    "numbers": {"dropout": 0.0, "steps": 800, "warmup": 80, "every": 100},
    "multi30k": {
        "merges": 10_000,
        "n_layers": 4,
        "dropout": 0.3,
        "drop_hidden": False,
        "tied": "all",
        "steps": 20_000,
        "max_tokens": 2560,
        "learning_rate": 5e-3,
        "warmup": 1000,
        "every": 250,
        "average": 10,
    },
    "text": {
        "model": MODERN,
        "n_layers": 3,
        "dropout": 0.0,
        "smoothing": 0.0,
        "max_tokens": 2048,
        "warmup": 100,
        "every": 100,
    },
}


def option(name: str) -> str:
    """The option of a setting: "max_tokens" is set by "--max-tokens"."""
    return "--" + name.replace("_", "-")


def _check_limits(field: dataclasses.Field[Any], value: Any) -> None:
    right: dict[str, Callable[[float], tuple[bool, str]]] = {
        "low": lambda limit: (value >= limit, f"at least {limit}"),
        "above": lambda limit: (value > limit, f"above {limit}"),
        "below": lambda limit: (value < limit, f"below {limit}"),
    }
    if value == math.inf and field.name != "max_norm":  # an infinite one shortens nothing
        raise ValueError(f"{option(field.name)} must be finite, not {value}")
    for kind, limit in field.metadata["limits"].items():
        holds, rule = right[kind](limit)
        if not holds:  # as for NaN, too
            raise ValueError(f"{option(field.name)} must be {rule}, not {value}")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Give an argparse parser an option for every setting."""
    for field in dataclasses.fields(Settings):
        if field.name == "corpus":
            continue
        kind: dict[str, Any] = {"type": field.type}
        if field.type is bool:
            kind = {"action": argparse.BooleanOptionalAction}
        parser.add_argument(option(field.name), default=None, help=field.metadata["says"], **kind)


def from_options(options: argparse.Namespace) -> Settings:
    """Settings from parsed options: what was not given is the corpus's preset, else the default."""
    given = {
        field.name: getattr(options, field.name)
        for field in dataclasses.fields(Settings)
        if getattr(options, field.name) is not None
    }
    settings = Settings(**PRESETS[options.corpus] | given)
    settings.check()
    for field in dataclasses.fields(Settings):
        if field.name in given and field.metadata["of"] not in ("", settings.model):
            raise ValueError(
                f"{option(field.name)} is a setting of another model than {settings.model}, which "
                f"learns from {settings.corpus}: leave it out"
            )
    if settings.model == MODERN and "d_ff" not in given:
        settings.d_ff = hidden_units(settings.d_model)
    return settings


def hidden_units(d_model: int) -> int:
    """How many a SwiGLU has if they cost what 4 · d_model cost without gates, times of 8."""
    return -(-8 * d_model // 24) * 8


def stored(config: dict[str, Any]) -> Settings:
    """The Settings of a training's config.json, a dict; ValueError if they are no such settings."""
    try:
        return Settings(**config)
    except TypeError as error:
        unknown = str(error).partition("() ")[2]
        raise ValueError(f"config.json is of another version of this program: {unknown}") from None


class Parser(argparse.ArgumentParser):
    """Says in one sentence what is wrong with the options."""

    def error(self, message: str) -> NoReturn:
        """Print the message and end the program."""
        self.exit(2, f"{self.prog}: {message} (--help lists the options)\n")
