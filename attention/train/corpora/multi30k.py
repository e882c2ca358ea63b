"""Multi30k, English and German: 31 014 descriptions of photographs, each in both languages.

The texts are not part of the course. ``SOURCE.fetch`` downloads them from the corpus's public
repository, or from a mirror; ``load`` reads them. Both compare the SHA-256 of every file with the
one below, so the numbers in a lesson come from the same sentences everywhere. `data/README.md` is
the card.
"""

from pathlib import Path

from attention.provided.downloads import File, Source

COMMIT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"


class CorpusError(RuntimeError):
    """A text of the corpus is missing or altered; str() is one sentence that says what to do."""


# split, language, raw or tokenised, bytes and SHA-256 of the text
_TEXTS = """
train            en raw 1801238 460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6
train            de raw 2110398 2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72
val              en raw   63297 1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227
val              de raw   75981 660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660
test_2016_flickr en raw   62076 399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182
test_2016_flickr de raw   70649 4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16
train            en tok 1837696 08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119
train            de tok 2150008 cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505
val              en tok   64608 46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec
val              de tok   77273 97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00
test_2016_flickr en tok   63307 5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2
test_2016_flickr de tok   71917 c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4
"""


def _name(split: str, language: str, tokenised: bool) -> str:
    return f"{split}.lc.norm.tok.{language}" if tokenised else f"{split}.{language}"


def _files() -> dict[str, File]:
    """The texts by name, as in "train.lc.norm.tok.en"; the repository has the raw ones packed."""
    files = {}
    for split, language, kind, size, sha256 in map(str.split, _TEXTS.strip().splitlines()):
        name = _name(split, language, kind == "tok")
        packed = ".gz" if kind == "raw" else ""
        files[name] = File(int(size), sha256, f"data/task1/{kind}/{name}{packed}")
    return files


SOURCE = Source(
    "multi30k", f"https://raw.githubusercontent.com/multi30k/dataset/{COMMIT}", _files()
)
FOLDER = SOURCE.folder


def load(split: str, language: str, tokenised: bool = True, folder: Path = FOLDER) -> list[str]:
    """Read the sentences of one split in one language; line i of both languages belong together.

    split      "train" (29 000 sentences), "val" (1 014) or "test_2016_flickr" (1 000)
    language   "en" or "de"
    tokenised  lower case, punctuation normalised, tokens separated by spaces; else as written
    returns    a list of str; raises CorpusError, in one sentence, if the text is missing or altered
    """
    name = _name(split, language, tokenised)
    if name not in SOURCE.files:
        there = ", ".join(SOURCE.files)
        raise CorpusError(f"Multi30k has no text called {name}; there are: {there}")
    content = SOURCE.read(name, folder, CorpusError)
    # Only "\n" ends a line: splitlines() would also split at other separators within a sentence.
    return content.decode().removesuffix("\n").split("\n")
