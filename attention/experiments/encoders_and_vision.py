"""Lesson 16: readers of documents and docstrings, models that know digits, and their figures.

`make bench-digits` measures what the claims say about digits.
"""

import copy
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from matplotlib.patches import Rectangle
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.recorded import Experiment, read, seeded
from attention.provided.data import digits, documents, library_texts
from attention.provided.data.library_texts import LENGTH, LIBRARIES, MASK, UNKNOWN, VOCABULARY
from attention.provided.data.tokens import PAD
from attention.provided.figures import plots, seeds
from attention.provided.files import ROOT
from attention.provided.measuring.occlusion import occlusion_map
from attention.provided.measuring.summary import summary
from attention.provided.models.attention_weights import watch_attention
from attention.provided.models.convolution import cnn as cnn
from attention.provided.progress import Bar
from attention.provided.training_steps import descend, fewer, take_steps
from attention.tokens_and_positions import LearnedPositions
from attention.transformer import Encoder

Piece = Callable[..., Any]  # a class or a function of the lesson
EPOCHS, BATCH, LEARNING_RATE = 40, 64, 2e-3
SIZES = {"d_model": 64, "n_heads": 4, "d_ff": 128, "n_layers": 2, "dropout": 0.1, "fused": True}
PATCH = 2  # side of a patch
SEEDS = (0, 1, 2)
MARKS = (300, 1000, 3000)  # steps after which a reader is tested


def _trained(
    model: nn.Module, loss: Callable[[], Tensor], steps: int, rate: float, label: str
) -> list[float]:
    """Train with AdamW for some steps; returns the losses.

    The rate rises for a tenth of the steps, then falls to 0 as half a wave of the cosine.
    """
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rate, total_steps=steps, pct_start=0.1
    )
    with Bar(steps, label) as bar:
        return descend(model, (loss() for _ in range(steps)), optimizer, schedule, bar)


def train(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    epochs: int = EPOCHS,
    seed: int = 0,
    label: str = "training",
) -> list[float]:
    """Train a classifier with AdamW and random batches; returns the mean loss of each epoch.

    While nbgrader runs the notebook, there is one epoch of a few images.
    """
    epochs, count = fewer(epochs, 1), fewer(len(images), 5 * BATCH)
    draw, per_epoch = torch.Generator().manual_seed(seed), -(-count // BATCH)
    orders = [torch.randperm(count, generator=draw) for _ in range(epochs)]
    batches = [rows for order in orders for rows in order.split(BATCH)]
    left = iter(batches)

    def loss() -> Tensor:
        rows = next(left)
        return F.cross_entropy(model(images[rows]), labels[rows])

    losses = _trained(model, loss, len(batches), LEARNING_RATE, label)
    sums = [loss * len(rows) for loss, rows in zip(losses, batches, strict=True)]
    return [sum(sums[i : i + per_epoch]) / count for i in range(0, len(sums), per_epoch)]


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Return the share of images whose best-scored class is the right one."""
    return (model(images).argmax(dim=1) == labels).double().mean().item()


def _tell(named: Mapping[str, Sequence[float]], what: str = "right") -> None:
    """Print a line for each label, with a share for each seed."""
    for name, shares in named.items():
        print(f"{name:<24} {what}, by seed:", *(f"{share:.3f}" for share in shares))


def _maps(model: nn.Module, images: Tensor) -> list[Tensor]:
    """What [CLS] looks at in each layer, mean of the heads: (B, N) each."""
    with watch_attention(model) as seen, torch.no_grad():
        model(images)
    return [weights[:, :, 0, 1:].mean(dim=1) for weights in seen.values()]


def vision_transformer(VisionTransformer: Piece, patch: int = PATCH) -> Any:
    """The model of the lesson, made of its class."""
    return VisionTransformer((8, 8), patch, 1, 10, **SIZES)


def correlation(a: Tensor, b: Tensor) -> float:
    """Pearson's correlation within each row of (B, N), mean of the rows."""
    a, b = (x - x.mean(dim=1, keepdim=True) for x in (a, b))
    return ((a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1)).clamp(min=1e-12)).mean().item()


READERS = ("two levels", "tanh between", "mean of means", "one level")


class Reader(nn.Module):
    """From the words of a document, (B, S, T) ids, to the scores of ten cities.

    reader   one of READERS, which differ in how they pool
    pooling  the lesson's HierarchicalAttention, mean_pooling and, for one level, attention_pooling
    """

    def __init__(self, reader: str, d_model: int, HierarchicalAttention: Piece, *pooling: Piece):
        super().__init__()
        self.reader, self.pooling = reader, pooling
        self.table = nn.Embedding(len(documents.WORDS), d_model)
        self.levels, self.head = HierarchicalAttention(d_model), nn.Linear(d_model, 10)
        self.between = nn.Sequential(nn.Linear(d_model, d_model), nn.Tanh())

    def forward(self, words: Tensor) -> Any:
        """Score the cities: (B, S, T) ids to (B, 10)."""
        x, mask = self.table(words), words != 0
        if self.reader == "two levels":
            return self.head(self.levels(x, mask)[0])
        mean_pooling, *attention_pooling = self.pooling
        if self.reader == "one level":
            (pool,) = attention_pooling
            return self.head(pool(x.flatten(1, 2), self.levels.word_query, mask.flatten(1))[0])
        sentences = mean_pooling(x.flatten(0, 1), mask.flatten(0, 1)).unflatten(0, x.shape[:2])
        sentences = self.between(sentences) if self.reader == "tanh between" else sentences
        return self.head(mean_pooling(sentences, mask.any(dim=-1)))


@functools.cache
def _documents() -> tuple[documents.Documents, documents.Documents]:
    return documents.make(4000, seed=1), documents.make(500, seed=2)


def show_documents() -> None:
    """Print two test documents, and the city that each asks for."""
    _, test_set = _documents()
    for words, city in zip(test_set.words[:2], test_set.cities, strict=False):
        for sentence in words[words.any(dim=1)]:
            print(*documents.text(sentence))
        print(f"→ {documents.CITIES[city]}   ({words.count_nonzero()} words)\n")


def learn_to_read(
    model: nn.Module, steps: int, marks: Sequence[int], label: str
) -> tuple[list[float], list[float]]:
    """Train a reader: the share of the test documents that is right after ``marks``; the losses."""
    train_set, test_set = _documents()
    right, losses = list[float](), list[float]()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def loss() -> Tensor:
        rows = torch.randint(len(train_set.words), (64,))
        return F.cross_entropy(model(train_set.words[rows]), train_set.cities[rows])

    with Bar(steps, label) as bar:
        for value in take_steps((loss() for _ in range(steps)), optimizer):
            losses.append(value)
            bar.update(len(losses), value)
            if len(losses) in marks:
                right.append(accuracy(model, test_set.words, test_set.cities))
    return right, losses


def four_readers(*pieces: Piece) -> tuple[dict[str, list[Reader]], int]:
    """Train the four readers with three seeds each; draw what they get right, step by step.

    How a reader pools changes; documents, word vectors, steps and rate stay the same. Dashed:
    guessing among the cities that occur.

    pieces   HierarchicalAttention, mean_pooling and attention_pooling
    returns  {reader: the trained ones}, and how many of the four end above 0.9 with every seed
    """
    steps = fewer(300, most=25)
    marks, readers, curves = range(25, steps + 1, 25), dict[str, Any](), dict[str, Any]()
    for name in READERS:
        readers[name], curves[name] = [], []
        for seed in SEEDS:
            torch.manual_seed(seed)
            readers[name].append(Reader(name, 32, *pieces))
            label = f"{name}, seed {seed}"
            curves[name].append(learn_to_read(readers[name][-1], steps, marks, label)[0])
    ax = seeds.curves(curves, marks, plots.panels(width=6.5, height=3.0))
    sizes = (_documents()[1].words != 0).any(dim=2).sum(dim=1)  # (B,): cities in each document
    ax.axhline((1 / sizes).mean().item(), color=plots.GREY, linestyle="--", linewidth=1.2)
    ax.set(xlabel="step", ylabel="documents right", ylim=(0, 1.05))
    plots.legend(ax, fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    ends = {name: [run[-1] for run in runs] for name, runs in curves.items()}
    _tell(ends, "right in the end")
    return readers, sum(min(end) > 0.9 for end in ends.values())


def what_a_reader_picks(readers: Sequence[Reader]) -> list[float]:
    """Draw the weights of the first reader for one test document.

    readers  with two levels of attention, one for each seed
    returns  for each, the share of the test documents in which Ada's sentence has the most weight
    """
    _, test_set = _documents()
    mask = test_set.words != 0
    with torch.no_grad():
        weights = [one.levels(one.table(test_set.words), mask)[1:] for one in readers]
    found = [of_sentences.argmax(dim=1) == test_set.sentence for of_sentences, _ in weights]
    picked: list[float] = [right.double().mean().item() for right in found]
    _tell({"most weight": picked}, "on Ada's sentence")
    of_sentences, of_words = weights[0]
    axes = plots.panels(columns=2, width=4.6, height=3.0, share=False)
    real = [row for row in range(8) if mask[0, row].any()]
    names = [documents.text(test_set.words[0, row])[0] for row in real]
    plots.bars(of_sentences[0, real], names, axes[0], "weights of the sentences, by who is in them")
    row = int(test_set.sentence[0])
    words = documents.text(test_set.words[0, row])
    plots.bars(of_words[0, row, : len(words)], words, axes[1], "weights of Ada's words")
    return picked


def read_narrow(
    reader: str,
    d_model: int,
    seed: int,
    steps: int,
    HierarchicalAttention: Piece,
    mean_pooling: Piece,
) -> dict[str, Any]:
    """Train a reader with d_model numbers for a word: right after MARKS and at the end; loss."""
    torch.manual_seed(seed)
    model = Reader(reader, d_model, HierarchicalAttention, mean_pooling)
    right, losses = learn_to_read(model, steps, (*MARKS, steps), f"{reader}, seed {seed}")
    end = losses[-20:]
    return {"right": [round(share, 3) for share in right], "loss": round(sum(end) / len(end), 3)}


def show_digits() -> None:
    """Draw seven test images with the lines between their patches."""
    data = digits.load()
    axes = plots.panels(columns=7, width=1.15, height=1.5, share=False)
    for ax, image, label in zip(axes, data.test_images, data.test_labels.tolist(), strict=False):
        plots.picture(image[0], ax, f"a {label}", lines=PATCH)


def train_on_digits(VisionTransformer: Piece) -> Any:
    """Train the lesson's model with seed 0; print what it gets right, and its parts."""
    data = digits.load()
    torch.manual_seed(0)
    model = vision_transformer(VisionTransformer)
    train(model, data.train_images, data.train_labels, seed=0)
    for name, images, labels in (("training", *data[:2]), ("test", *data[2:])):
        print(f"{name:<9} right {accuracy(model, images, labels):.4f}")
    print(summary(model, data.test_images[:1]))
    return model


def _stored() -> Any:
    return json.loads((ROOT / "data" / "digits.json").read_text(encoding="utf-8"))


def errors_on_digits() -> float:
    """Draw how many test images each stored model gets wrong: three seeds and their median.

    The model, the order of the patches or the positions change; split and steps stay the same.

    returns  the share that is right without positions, median of three seeds
    """
    stored = _stored()
    rows, n_test = stored["models"], stored["settings"]["test"]
    wrong = {name: [n_test * (1 - one) for one in row["right"]] for name, row in rows.items()}
    ax = seeds.dots(wrong, plots.panels(width=6.5, height=3.2), xlabel=f"wrong, of {n_test}")
    ax.set_xscale("log")
    ax.set_xticks([2, 5, 10, 20, 50, 100], ["2", "5", "10", "20", "50", "100"])
    ax.minorticks_off()
    for name, row in rows.items():
        _tell({name: row["right"]}, f"{row['parameters']:7,} parameters   right")
    return float(sorted(rows["ViT, no positions"]["right"])[1])


def fixed_and_variable_weights(model: Any) -> list[float]:
    """Draw, for two images, the weights of a convolution and those of the model's first attention.

    An image is 4 · 4 patches, laid out as 16 positions. The weights of the convolution, which finds
    edges, are the derivatives of its outputs with respect to its inputs.
    """
    data = digits.load()
    kernel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]).view(1, 1, 3, 3)
    axes, found = plots.panels(columns=4, width=2.5, height=2.6, share=False), []
    for n, label in enumerate(data.test_labels[:2].tolist()):
        grid = F.avg_pool2d(data.test_images[n], 2)  # (1, 4, 4): the ink of each patch
        convolve = lambda grid: F.conv2d(grid, kernel, padding=1).flatten()  # noqa: E731
        of_conv = torch.func.jacrev(convolve)(grid).view(16, 16)
        with watch_attention(model) as seen, torch.no_grad():
            model(data.test_images[n : n + 1])
        first = seen["classifier.encoder.layers.0.attention"][0].mean(dim=0)[1:, 1:]  # no [CLS]
        plots.signed(of_conv, axes[n], f"convolution, a {label}", limit=2, colorbar=False)
        plots.picture(first, axes[n + 2], f"attention, a {label}")
        axes[n].set(xticks=[], yticks=[])
        found.append((of_conv, first))
    changes = [(one - two).abs().max().item() for one, two in zip(*found, strict=True)]
    print(
        "largest difference between the two images: convolution {:.3f}, attention {:.3f}".format(
            *changes
        )
    )
    return changes


def where_it_looks(model: Any, blank_each_patch: Piece) -> Any:
    """Draw five images, what [CLS] looks at in the last layer, and the drop without each patch."""
    images, labels = (part[:5] for part in digits.load()[2:])
    looked = _maps(model, images)[-1]
    drop = occlusion_map(model, images, labels, blank_each_patch(images, PATCH))
    axes = plots.panels(3, 5, width=1.5, height=1.55, share=False)
    for n in range(5):
        plots.picture(images[n, 0], axes[0, n], f"a {labels[n]}", lines=PATCH)
        for ax, numbers in zip(axes[1:, n], (looked, drop), strict=True):
            plots.picture(images[n, 0], ax, f"up to {numbers[n].max():.2f}")
            ax.images[0].set_alpha(0.35)
            shares = (numbers[n] / numbers.max()).clamp(min=0)  # one scale for the five
            for place, share in enumerate(shares.tolist()):
                corner = PATCH * (place % 4) - 0.5, PATCH * (place // 4) - 0.5
                style = {"color": plots.VERMILION, "alpha": 0.85 * share, "linewidth": 0}
                ax.add_patch(Rectangle(corner, PATCH, PATCH, **style))
    for ax, name in zip(axes[:, 0], ("image", "attention", "occlusion"), strict=True):
        ax.set_ylabel(name)
    return axes


def blank_one_patch() -> float:
    """Draw what stored models get right with one patch blank: three seeds and their median.

    Which patch is blank changes; models and test images stay the same.

    returns  the share that is right without the most attended patch, median of three seeds
    """
    stored = _stored()
    left = stored["right with one patch blank"]
    seeds.dots(left, plots.panels(width=6.5, height=2.8), xlabel="still right, of all test images")
    _tell(left, "blank   right")
    for name, numbers in stored["correlation"].items():
        print(f"correlation of {name:<19}", *(f"{number:+.2f}" for number in numbers))
    return float(sorted(left["most attended"])[1])


def look(
    seed: int, VisionTransformer: Piece, blank_each_patch: Piece, epochs: int = EPOCHS
) -> dict[str, Any]:
    """Train the ViT; for each layer, how its map goes with the drop, mean of the images."""
    data = digits.load()
    torch.manual_seed(seed)
    model = vision_transformer(VisionTransformer)
    train(model, data.train_images, data.train_labels, epochs, seed)
    drop = occlusion_map(model, *data[2:], blank_each_patch(data.test_images, PATCH))
    maps = [round(correlation(one, drop), 3) for one in _maps(model, data.test_images)]
    return {"right": round(accuracy(model, *data[2:]), 4), "map and drop": maps}


def move(
    model: str,
    pixels: int,
    seed: int,
    VisionTransformer: Piece,
    epochs: int = EPOCHS,
    split: int = 0,
) -> dict[str, float]:
    """Train on images moved by up to ``pixels``, each time anew; test on images as they are."""
    data, draw = digits.load(split), torch.Generator().manual_seed(0)
    torch.manual_seed(seed)
    net = cnn() if model == "CNN" else vision_transformer(VisionTransformer)

    def shift(module: nn.Module, inputs: Any) -> Any:
        return digits.moved(inputs[0], pixels, draw) if module.training and pixels else None

    net.register_forward_pre_hook(shift)
    losses = train(net, data.train_images, data.train_labels, epochs, seed)
    return {"right": round(accuracy(net, *data[2:]), 4), "loss": round(losses[-1], 4)}


LABELS = (30, 90, 300, 1500)  # labelled docstrings, as many of each library
SHARE = 0.15  # of the words that are hidden
PRETRAINING, TUNING, TUNING_RATE = 2000, 200, 2e-3


class WordReader(nn.Module):
    """An encoder that guesses words, and tells the library of a text from its pooled vectors."""

    def __init__(self, mean_pooling: Piece, d_model: int = 64):
        super().__init__()
        self.pooling, self.table = mean_pooling, nn.Embedding(VOCABULARY, d_model)
        nn.init.normal_(self.table.weight, std=d_model**-0.5)
        self.positions = LearnedPositions(LENGTH, d_model)
        self.encoder = Encoder(2, d_model, n_heads=4, d_ff=128, dropout=0.1, fused=True)
        self.bias = nn.Parameter(torch.zeros(VOCABULARY))
        self.head = nn.Linear(d_model, len(LIBRARIES))

    def encode(self, ids: Tensor) -> Any:
        """A vector for each word: (B, T) to (B, T, d_model)."""
        return self.encoder(self.positions(8 * self.table(ids)), (ids != PAD).unsqueeze(1))

    def guess(self, ids: Tensor, asked: Tensor) -> Any:
        """Score all words at the places that are asked for, bool (B, T): (places, VOCABULARY)."""
        return self.encode(ids)[asked] @ self.table.weight.T + self.bias

    def forward(self, ids: Tensor) -> Any:
        """Score the libraries: (B, T) to (B, 3)."""
        return self.head(self.pooling(self.encode(ids), ids != PAD))


def _fill_in(model: WordReader, mask_tokens: Piece, seed: int, steps: int) -> dict[str, Any]:
    """Pre-train on hidden words of all training texts; how well held-out ones are guessed."""
    train_set, test_set, _ = library_texts.load()
    draw = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        ids = train_set.ids[torch.randint(len(train_set.ids), (64,), generator=draw)]
        read, wanted = mask_tokens(ids, torch.rand(ids.shape, generator=draw), SHARE, MASK)
        asked = wanted != -100  # scores are computed for these alone: 2 000 for each
        return F.cross_entropy(model.guess(read, asked), wanted[asked])

    _trained(model, loss, steps, 2e-3, f"hidden words, seed {seed}")
    noise = torch.rand(test_set.ids.shape, generator=torch.Generator().manual_seed(0))
    read, wanted = mask_tokens(test_set.ids, noise, SHARE, MASK)
    asked = wanted != -100
    with torch.no_grad():
        scores, wanted = model.guess(read, asked), wanted[asked]
    often = train_set.ids[train_set.ids != PAD].bincount().argmax()
    return {
        "guessed": round((scores.argmax(1) == wanted).double().mean().item(), 4),
        "the most frequent one": round((wanted == often).double().mean().item(), 4),
    }


def _right(says: Tensor, library: Tensor) -> float:
    """The share that is right, mean of the libraries: a guess gets a third."""
    shares = [(says[library == n] == n).double().mean().item() for n in range(len(LIBRARIES))]
    return round(sum(shares) / len(shares), 4)


def _tune(model: nn.Module, rows: Tensor, seed: int, label: str) -> float:
    """Train a copy of a model on some labelled texts; the share of held-out ones told apart."""
    train_set, test_set, _ = library_texts.load()
    model, draw = copy.deepcopy(model), torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        some = rows[torch.randint(len(rows), (32,), generator=draw)]
        return F.cross_entropy(model(train_set.ids[some]), train_set.library[some])

    _trained(model, loss, TUNING, TUNING_RATE, label)
    with torch.no_grad():
        return _right(model(test_set.ids).argmax(dim=1), test_set.library)


def _count_words(rows: Tensor) -> float:
    """Logistic regression on which words a text has: what needs no encoder."""
    from sklearn.linear_model import LogisticRegression  # slow to import

    train_set, test_set, _ = library_texts.load()

    def occur(ids: Tensor) -> Tensor:
        return torch.zeros(len(ids), VOCABULARY).scatter_(1, ids, 1.0)[:, UNKNOWN:]

    model = LogisticRegression(max_iter=500)
    model.fit(occur(train_set.ids[rows]).numpy(), train_set.library[rows].numpy())
    said = torch.from_numpy(model.predict(occur(test_set.ids).numpy()))
    return _right(said, test_set.library)


def read_hidden_words(
    seed: int,
    mask_tokens: Piece,
    mean_pooling: Piece,
    steps: int = PRETRAINING,
    labels: Sequence[int] = LABELS,
    vectors_alone: bool = False,
) -> dict[str, Any]:
    """Pre-train an encoder on hidden words; then tell libraries apart from few labelled texts.

    For each number of labels: what the pre-trained encoder gets right, the same encoder from its
    random start, and counted words, all from the same labelled texts. Or, ``vectors_alone``, what
    the random start gets right with the pre-trained table of word vectors.
    """
    library = library_texts.load()[0].library
    torch.manual_seed(seed)
    start = WordReader(mean_pooling)
    pretrained, draw = copy.deepcopy(start), torch.Generator().manual_seed(seed)
    found: dict[str, Any] = _fill_in(pretrained, mask_tokens, seed, steps)
    orders = [(library == n).nonzero()[:, 0] for n in range(len(LIBRARIES))]
    orders = [order[torch.randperm(len(order), generator=draw)] for order in orders]
    models = {"pre-trained": pretrained, "random start": start}
    if vectors_alone:
        start.table = pretrained.table
        models = {"word vectors alone": start}
    found |= {name: list[float]() for name in models}
    for count in labels:
        rows = torch.cat([order[: count // len(LIBRARIES)] for order in orders])
        for name, model in models.items():
            found[name].append(_tune(model, rows, seed, f"{name}, {count} labels"))
        if not vectors_alone:
            found.setdefault("counted words", []).append(_count_words(rows))
    return found


def show_hidden_words(mask_tokens: Piece) -> None:
    """Print one docstring as the encoder reads it, and the words that it has to guess."""
    texts, _, vocabulary = library_texts.load()
    noise = torch.rand(texts.ids.shape, generator=torch.Generator().manual_seed(0))
    ids, wanted = mask_tokens(texts.ids, noise, SHARE, MASK)
    print("reads  ", *(vocabulary[n] for n in ids[0] if n != PAD))
    print("guesses", *(vocabulary[n] for n in wanted[0] if n != -100))


def draw_hidden_words() -> float:
    """Draw and print what the recorded encoders get right, by how many labelled texts they have.

    returns  with the fewest labels, how much more the pre-trained one gets right: the median seed
    """
    rows = [row for row in read("encoders_and_vision", "hidden words") if "steps" not in row]
    for row, vectors in zip(rows, read("encoders_and_vision", "word vectors alone"), strict=True):
        row["word vectors alone"] = vectors["word vectors alone"]
    ax = plots.panels(width=6.5, height=3.0)
    colours = plots.BLUE, plots.GREEN, plots.VERMILION, plots.GREY
    styles = "o-", "^-", "s-", "D--"
    names = "pre-trained", "word vectors alone", "random start", "counted words"
    for name, colour, style in zip(names, colours, styles, strict=True):
        for row in rows:
            label = name if row is rows[0] else None
            ax.plot(LABELS, row[name], style, color=colour, alpha=0.7, markersize=4, label=label)
        for place, count in enumerate(LABELS):
            _tell({name: [row[name][place] for row in rows]}, f"{count:4} labels   right")
    ax.axhline(1 / len(LIBRARIES), color=plots.BLACK, linewidth=1)
    ax.set(xscale="log", xlabel="labelled docstrings", ylabel="library named right", ylim=(0.3, 1))
    ax.set_xticks(LABELS, LABELS)
    ax.minorticks_off()
    plots.legend(ax, fontsize=8, loc="center right")
    for name in ("guessed", "the most frequent one"):
        _tell({name: [row[name] for row in rows]}, "of the hidden words")
    return sorted(row["pre-trained"][0] - row["random start"][0] for row in rows)[len(rows) // 2]


TANH, LEVELS = {"reader": "tanh between"}, {"reader": "two levels"}
SHORT_LOOK = {"seed": 0, "epochs": 1}
SHORT_WORDS = {"seed": 0, "steps": 50, "labels": [30]}
SHORT_MOVE = {"model": "CNN", "pixels": 1, "seed": 0, "epochs": 4}

EXPERIMENTS = {
    "hidden words": Experiment(
        points=[*seeded(SEEDS), SHORT_WORDS],
        run=read_hidden_words,
        again=SHORT_WORDS,
    ),
    "word vectors alone": Experiment(
        points=seeded(SEEDS, vectors_alone=True),
        run=read_hidden_words,
        again=None,
    ),
    "narrow readers": Experiment(
        points=[
            *seeded(SEEDS, **TANH, d_model=8, steps=MARKS[-1]),
            *seeded(SEEDS, **TANH, d_model=4, steps=MARKS[-1]),
            *seeded(SEEDS, **LEVELS, d_model=8, steps=MARKS[0]),
        ],
        run=read_narrow,
        again=LEVELS | {"d_model": 8, "seed": 0, "steps": MARKS[0]},
    ),
    "map of the first layer": Experiment(
        points=[*seeded(SEEDS), SHORT_LOOK],
        run=look,
        again=SHORT_LOOK,
    ),
    "moved images": Experiment(
        points=[
            *seeded(SEEDS, model="ViT", pixels=1),
            *seeded(SEEDS, model="CNN", pixels=1),
            *seeded(SEEDS, model="CNN", pixels=0),
            SHORT_MOVE,
        ],
        run=move,
        again=SHORT_MOVE,
    ),
    "other splits": Experiment(
        points=[
            {"model": model, "pixels": 0, "split": split, "seed": split}
            for model in ("CNN", "ViT")
            for split in (1, 2, 3)
        ],
        run=move,
        again=None,
    ),
}
