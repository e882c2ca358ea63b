"""Lesson 19: what is measured on a published BERT, beside the same architecture untrained.

The published model is all-MiniLM-L6-v2. Where it was not fetched, figures and tables read what was
recorded with it; the small stand-in, which ships, is run in any case. First the models and texts,
then the measurements, then the figures and tables of the lesson, one call each.
"""

import functools
import itertools
import random
import re
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.experiments.hidden_tokens import (
    attribution,
    effective,
    identifiability,
    recorded,
)
from attention.experiments.recorded import Experiment, seeded
from attention.provided.data import docstrings, sentences
from attention.provided.data.tokens import PAD
from attention.provided.figures import plots, seeds
from attention.provided.files import ROOT
from attention.provided.models import model_file
from attention.provided.models.bert import files, minilm
from attention.provided.models.bert.files import (
    MODELS,
    PUBLISHED,
    SMALL,
    UNTRAINED,
    UNTRAINED_SMALL,
    Bert,
    Piece,
    build,
    vectors,
)
from attention.provided.models.bert.tokenizer import WordPieceTokenizer

SEEDS = (0, 1, 2)
TRANSFORMERS = ROOT / "data" / "transformers_outputs.safetensors"
FEATURES = 16  # of each vector, the first ones: what is stored of what transformers gives


# The measurements


def difference(
    model: str, PublishedEncoder: Piece, rename_weights: Piece, wordpiece: Piece
) -> dict[str, Any]:
    """The largest difference to what transformers' BertModel gives, after each layer."""
    bert = build(model, 0, PublishedEncoder, rename_weights, wordpiece)
    stored, _ = model_file.load(TRANSFORMERS)
    ids = bert.tokenizer.batch(sentences.SENTENCES)
    with torch.inference_mode():
        hidden = bert.model(ids, return_layers=True)[..., :FEATURES]  # (n_layers + 1, B, T, 16)
    far = (hidden - stored[model]).abs()[:, ids != PAD]
    return {"largest": far.amax(dim=(1, 2)).tolist()}


def similar(
    model: str,
    PublishedEncoder: Piece,
    rename_weights: Piece,
    wordpiece: Piece,
    sentence_vectors: Piece,
) -> dict[str, Any]:
    """Cosines of all pairs of SENTENCES."""
    bert = build(model, 0, PublishedEncoder, rename_weights, wordpiece)
    found = vectors(bert, sentences.SENTENCES, sentence_vectors)
    return {"cosines": (found @ found.T).tolist()}


CHANGES = (
    *("eps 1e-5", "tanh-GELU", "padding is seen", "capitals stay", "ReLU", "no positions"),
    *("words · √d_model", "no first LayerNorm", "pre-norm"),
)


def changed(bert: Bert, change: str) -> None:
    """Change one thing in a model."""
    for part in bert.model.modules():
        if isinstance(part, nn.LayerNorm) and change == "eps 1e-5":
            part.eps = 1e-5
        if hasattr(part, "relu") and change in ("tanh-GELU", "ReLU"):
            part.relu = nn.GELU("tanh") if change == "tanh-GELU" else nn.ReLU()
        if hasattr(part, "pre_norm"):
            part.pre_norm = change == "pre-norm"
    embeddings = bert.model.embeddings
    if change == "padding is seen":
        for layer in bert.model.encoder.layers:  # each gets x, but no mask
            layer.register_forward_pre_hook(lambda _, x, mask: (x[:1], {}), with_kwargs=True)
    if change == "no positions":
        nn.init.zeros_(embeddings.positions.weight)
    if change == "words · √d_model":
        embeddings.words.weight.data *= embeddings.words.embedding_dim**0.5
    if change == "no first LayerNorm":
        embeddings.norm = nn.Identity()


def broken(
    model: str,
    change: str,
    PublishedEncoder: Piece,
    rename_weights: Piece,
    wordpiece: Piece,
    sentence_vectors: Piece,
) -> dict[str, Any]:
    """How far the vectors of held-out docstrings move, and what is still found."""
    summaries, bodies = sentences.held_out()
    both = []
    for one in (None, change):
        bert = build(model, 0, PublishedEncoder, rename_weights, wordpiece)
        if one:
            changed(bert, one)
        lower = one != "capitals stay"
        both.append([vectors(bert, x, sentence_vectors, lower) for x in (summaries, bodies)])
    cosines = torch.cat([(a * b).sum(dim=1) for a, b in zip(*both, strict=True)])
    return {
        "cosine": cosines.mean().item(),
        "least": cosines.min().item(),
        "found": sentences.share_found(*both[1])[0],
    }


MANY = 4  # words that are shared, or more


def retrieval(
    model: str,
    seed: int,
    PublishedEncoder: Piece,
    rename_weights: Piece,
    wordpiece: Piece,
    sentence_vectors: Piece,
) -> dict[str, Any]:
    """How often the body of a held-out docstring is found by its summary, among 589.

    by_shared  the same for summaries that share 0, 1, 2, 3, and 4 or more words with it
    """
    if model in sentences.WORD_SEARCHES:
        queries, passages = sentences.counted_words(model)
    else:
        bert = build(model, seed, PublishedEncoder, rename_weights, wordpiece)
        queries, passages = (vectors(bert, x, sentence_vectors) for x in sentences.held_out())
    first, shared = sentences.found(queries, passages), sentences.shared_words().clamp(max=MANY)
    by_shared = [first[shared == words].mean().item() for words in range(MANY + 1)]
    return {"first": first.mean().item(), "by_shared": by_shared}


def meaning(
    model: str,
    PublishedEncoder: Piece,
    rename_weights: Piece,
    wordpiece: Piece,
    sentence_vectors: Piece,
) -> dict[str, Any]:
    """Cosines of each sentence with the same in other words, and with another thing."""
    bert = build(model, 0, PublishedEncoder, rename_weights, wordpiece)
    found: dict[str, Any] = {}
    for kind, triplets in sentences.TRIPLETS.items():
        rows = [vectors(bert, triplet, sentence_vectors) for triplet in triplets]
        found[kind] = [[(a @ b).item(), (a @ c).item()] for a, b, c in rows]
    return found


STEPS, BATCH = 40, 64
PARTNERS = ("right", "shuffled")


def contrast(
    partners: str,
    seed: int,
    PublishedEncoder: Piece,
    rename_weights: Piece,
    wordpiece: Piece,
    sentence_vectors: Piece,
    contrastive_loss: Piece,
) -> dict[str, Any]:
    """Train the stand-in's architecture from nothing: what is found before and after.

    partners  "right", or "shuffled": in each batch, the bodies are exchanged at random
    """
    bert = build(UNTRAINED_SMALL, seed, PublishedEncoder, rename_weights, wordpiece)
    queries, passages = sentences.held_out()
    found, losses, draw = [], [], random.Random(seed)
    found.append(share_first(bert, queries, passages, sentence_vectors))
    rows = draw.sample(docstrings.split(docstrings.load())[0], STEPS * BATCH)
    optimizer = torch.optim.AdamW(bert.model.parameters(), lr=4e-3)
    for start in range(0, len(rows), BATCH):
        summaries = [row.summary for row in rows[start : start + BATCH]]
        bodies = [row.body for row in rows[start : start + BATCH]]
        if partners == "shuffled":
            draw.shuffle(bodies)
        pair = []
        for texts in (summaries, bodies):
            ids = bert.tokenizer.batch(texts, 32)  # (BATCH, up to 32)
            pair.append(sentence_vectors(bert.model(ids), ids != PAD))
        loss = contrastive_loss(*pair, temperature=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    found.append(share_first(bert, queries, passages, sentence_vectors))
    return {"found": found, "losses": [losses[0], sum(losses[-5:]) / 5]}


def share_first(bert: Bert, queries: list[str], passages: list[str], pool: Piece) -> float:
    """For which share of the queries the passage of the same row is the nearest."""
    return sentences.share_found(vectors(bert, queries, pool), vectors(bert, passages, pool))[0]


@functools.lru_cache(maxsize=2)  # one question often follows another
def _to_search(model: str, *lesson: Piece) -> tuple[Bert, Tensor]:
    """A model, and the vectors of all held-out docstrings."""
    bert = build(model, 0, *lesson[:3])
    passages = [" ".join(pair) for pair in zip(*sentences.held_out(), strict=True)]
    return bert, vectors(bert, passages, lesson[3])


def asked(
    model: str,
    question: str,
    PublishedEncoder: Piece,
    rename_weights: Piece,
    wordpiece: Piece,
    sentence_vectors: Piece,
    search: Piece,
) -> dict[str, Any]:
    """The three held-out docstrings nearest to a question: their rows, and the cosines."""
    lesson = PublishedEncoder, rename_weights, wordpiece, sentence_vectors
    bert, passages = _to_search(model, *lesson)
    cosines, rows = search(vectors(bert, [question], sentence_vectors), passages, 3)
    return {"rows": rows[0].tolist(), "cosines": cosines[0].tolist()}


def pieces(
    model: str, PublishedEncoder: Piece, rename_weights: Piece, wordpiece: Piece
) -> dict[str, Any]:
    """The pieces of TEXTS in a model's vocabulary."""
    tokenizer = build(model, 0, PublishedEncoder, rename_weights, wordpiece).tokenizer
    return {"pieces": list(map(tokenizer.pieces, sentences.TEXTS))}


# The figures and tables


def show_similar(*lesson: Piece) -> Tensor:
    """Draw cosines of all pairs of SENTENCES; returns the published model's.

    lesson  PublishedEncoder, rename_weights, wordpiece, sentence_vectors, with which the stand-in
            is run, and the published model where it was fetched; without them its record is drawn
    """
    (row,) = recorded("similar", model=PUBLISHED)
    shown = {"all-MiniLM-L6-v2": row["cosines"]}
    if lesson:
        theirs = similar(PUBLISHED, *lesson)["cosines"] if minilm.available() else row["cosines"]
        shown = {"stand-in": similar(SMALL, *lesson)["cosines"], "all-MiniLM-L6-v2": theirs}
    axes, places = plots.panels(1, len(shown), width=8.5 - 2 * len(shown), height=3.2), range(8)
    labels = [f"{text}  {n}" for n, text in enumerate(sentences.SENTENCES, start=1)]
    subject = torch.arange(len(places)) // 2
    for ax, (name, rows) in zip(axes if lesson else [axes], shown.items(), strict=True):
        cosines = torch.tensor(rows)
        plots.signed(cosines, ax, title=name, colorbar=not lesson)
        ax.set_yticks(places, labels)
        ax.set_xticks(places, [f"{n + 1}" for n in places])
        pairs = cosines.diagonal(1)[::2].tolist()
        for n, cosine in enumerate(pairs):
            for x, y in ((2 * n, 2 * n + 1), (2 * n + 1, 2 * n)):
                ax.text(x, y, f"{cosine:.2f}", ha="center", va="center", fontsize=8)
        others = cosines[subject[:, None] != subject].max()
        print(f"{name:18} on one subject {seeds.span(pairs)}, others {others:.2f} at most")
    return cosines


def draw_gelu(gelu: Piece) -> None:
    """Draw a GELU beside ReLU; print what its approximation by a tanh gets wrong."""
    x = torch.linspace(-3, 3, 301)
    ax = plots.panels(width=4.8, height=2.8)
    ax.plot(x, x.relu(), "--", color=plots.GREY, linewidth=1.2, label="ReLU")
    ax.plot(x, gelu(x), color=plots.BLUE, label="GELU")
    ax.set(xlabel="x", aspect="equal")
    plots.legend(ax, loc="upper left")
    wrong = F.gelu(x, approximate="tanh") - gelu(x)
    print(f"the form with a tanh differs by at most {wrong.abs().max():.4f}")


def show_pieces(wordpiece: Piece) -> None:
    """Draw the pieces of TEXTS: your function, the stand-in's vocabulary; recorded, the other."""
    tokenizer = WordPieceTokenizer(files.small().vocabulary, wordpiece)
    (row,) = recorded("pieces", model=PUBLISHED)
    shown = {}
    for n, (text, theirs) in enumerate(zip(sentences.TEXTS, row["pieces"], strict=True)):
        shown[f"{text}        1 600"] = tokenizer.pieces(text)
        shown[" " * n + "30 522"] = theirs  # no two labels may be the same
    boxes = plots.tokens(shown).patches
    for box, piece in zip(boxes, itertools.chain(*shown.values()), strict=True):
        box.set_color(plots.ORANGE if piece.startswith("##") else plots.SKY)


def compare_layers(PublishedEncoder: Piece, rename_weights: Piece, wordpiece: Piece) -> None:
    """Print how far your layers are from transformers' after each: the stand-in, and the real one.

    The published model is run where it was fetched; else what was recorded is printed.
    """
    lesson = (PublishedEncoder, rename_weights, wordpiece)
    rows = {"stand-in, your layers": difference(SMALL, *lesson)}
    if minilm.available():
        rows["all-MiniLM-L6-v2, your layers"] = difference(PUBLISHED, *lesson)
    else:
        (rows["all-MiniLM-L6-v2, recorded"],) = recorded("difference", model=PUBLISHED)
        print(f"Run the published model in your own layers: {minilm.COMMAND}")
    for name, row in rows.items():
        print(f"{name:30} largest difference {max(row['largest']):.0e}")


def show_broken() -> float:
    """Print what each of CHANGES does to the published model.

    returns  the mean cosine with the right vectors where attention sees padding
    """
    rows = {row["change"]: row for row in recorded("broken", model=PUBLISHED)}
    print(f"{'change':18}{'cosine, mean':>14}{'cosine, least':>15}{'found first':>13}")
    (whole,) = recorded("retrieval", model=PUBLISHED)
    print(f"{'as published':18}{1:14.4f}{1:15.4f}{whole['first']:13.3f}")
    for change in sorted(rows, key=lambda change: rows[change]["cosine"], reverse=True):
        row = rows[change]
        print(f"{change:18}{row['cosine']:14.4f}{row['least']:15.4f}{row['found']:13.3f}")
    return float(rows["padding is seen"]["cosine"])


def draw_found() -> float:
    """Draw how often a docstring's body is found by its summary, among 589 that are held out.

    Printed for all summaries, and drawn by how many words the two share.

    returns  the stand-in's share of those found first
    """
    rows = {name: recorded("retrieval", model=name) for name in (*sentences.WORD_SEARCHES, *MODELS)}
    best_first = sorted(rows, key=lambda name: -median(row["first"] for row in rows[name]))
    names = {PUBLISHED: "all-MiniLM-L6-v2", UNTRAINED: "all-MiniLM-L6-v2, untrained"}
    for name in best_first:
        print(f"{names.get(name, name):28}", ", ".join(f"{row['first']:.2f}" for row in rows[name]))
    words = [*map(str, range(MANY)), f"{MANY}+"]
    counts = sentences.shared_words().clamp(max=MANY).bincount().tolist()
    print(f"\n{'words shared':28}", *(f"{word:>9}" for word in words))
    print(f"{'first lines':28}", *(f"{count:9}" for count in counts))
    lines = {names.get(one, one): rows[one][0]["by_shared"] for one in (PUBLISHED, "tf-idf", SMALL)}
    for name, found in lines.items():
        print(f"{name:28}", *(f"{share:9.2f}" for share in found))
    ax = plots.panels(width=4.6, height=2.6)
    plots.lines(range(MANY + 1), lines, ax, "share found first", "words shared")
    ax.set_xticks(range(MANY + 1), words)
    ax.set(ylim=(-0.04, 1.04), yticks=[0, 0.5, 1])
    plots.legend(ax, fontsize=8, loc="upper left")
    return float(rows[SMALL][0]["first"])


def ask(
    question: str,
    PublishedEncoder: Piece,
    rename_weights: Piece,
    wordpiece: Piece,
    sentence_vectors: Piece,
    search: Piece,
) -> None:
    """Print the three held-out docstrings nearest to a question, by your own pieces.

    The stand-in runs in any case. The published model runs where it was fetched; else what it found
    is printed for the questions of the lesson.
    """
    lesson = (PublishedEncoder, rename_weights, wordpiece, sentence_vectors, search)
    print(question)
    _print_found("stand-in", asked(SMALL, question, *lesson))
    if minilm.available():
        _print_found("all-MiniLM-L6-v2", asked(PUBLISHED, question, *lesson))
    elif rows := recorded("asked", model=PUBLISHED, question=question):
        _print_found("all-MiniLM-L6-v2", rows[0])
    else:
        print(f"For the published model's answer: {minilm.COMMAND}")


def _print_found(name: str, found: dict[str, Any]) -> None:
    print(f"  {name}")
    for row, cosine in zip(found["rows"], found["cosines"], strict=True):
        print(f"    {cosine:.2f}  {sentences.held_out()[0][row]}")


def show_contrast(*lesson: Piece) -> float:
    """Train with right partners here, for one seed, and print it above what was recorded.

    lesson   PublishedEncoder, rename_weights, wordpiece, sentence_vectors, contrastive_loss
    returns  the share found first after the training
    """
    rows = [{"name": "right, seed 0, yours", **contrast(PARTNERS[0], 0, *lesson)}]
    for row in recorded("contrast"):
        rows.append({"name": f"{row['partners']}, seed {row['seed']}, recorded", **row})
    print(f"{'partners':30}{'loss, first':>12}{'last five':>11}{'found before':>14}{'after':>7}")
    for row in rows:
        print(f"{row['name']:30}{row['losses'][0]:12.2f}{row['losses'][1]:11.2f}", end="")
        print(f"{row['found'][0]:14.2f}{row['found'][1]:7.2f}")
    return float(rows[0]["found"][1])


LOOKS = (  # of the same in other words, and of another thing; where its sentence is printed
    ("the same", "o", plots.BLUE, "bottom"),
    ("something else", "D", plots.VERMILION, "top"),
)


def draw_meaning() -> int:
    """Draw the cosines with the same in other words, and with another thing in nearly the same.

    returns  in how many of the 18 triplets the other thing is nearer
    """
    (row,) = recorded("meaning", model=PUBLISHED)
    axes, nearer = plots.panels(len(sentences.TRIPLETS), width=6.5, height=2.2, share=False), 0
    for ax, (kind, triplets) in zip(axes, sentences.TRIPLETS.items(), strict=True):
        for place, (cosines, triplet) in enumerate(zip(row[kind], triplets, strict=True)):
            ax.plot(cosines, [place] * 2, color=plots.GREY, linewidth=1)
            for (name, mark, color, va), x, text in zip(LOOKS, cosines, triplet[1:], strict=True):
                ax.plot(x, place, mark, color=color, label=None if place else name)
                ax.text(1.05, place, text, color=color, fontsize=7, va=va)
        ax.set_yticks(range(len(triplets)), [sentence for sentence, _, _ in triplets], fontsize=8)
        ax.set(title=kind, xlim=(0.2, 1.03), ylim=(len(triplets) - 0.4, -0.6))
        wrong = sum(other > same for same, other in row[kind])
        nearer += wrong
        counted = sum(_shared(a, c) > _shared(a, b) for a, b, c in triplets)
        print(f"{kind:13} something else is nearer in {wrong} of {len(triplets)}", end="; ")
        print(f"shares more words in {counted}; cosine {seeds.span(far for _, far in row[kind])}")
    for ax in axes[:-1]:
        ax.set_xticklabels([])
    axes[-1].set_xlabel("cosine")
    plots.legend(axes[-1], fontsize=8, loc="lower left")
    return nearer


def _shared(*texts: str) -> int:
    """How many words all these sentences share."""
    return len(set.intersection(*(set(re.findall(r"\w+", text.lower())) for text in texts)))


BOTH = [{"model": PUBLISHED}, {"model": SMALL}]
AGAIN = {"model": SMALL, "seed": 0}
SAMPLES = [*seeded(SEEDS, model=PUBLISHED), *seeded(SEEDS, model=UNTRAINED), AGAIN]

EXPERIMENTS = {
    "difference": Experiment(points=BOTH, run=difference, again={"model": SMALL}),
    "similar": Experiment(points=BOTH, run=similar, again={"model": SMALL}),
    "pieces": Experiment(points=BOTH, run=pieces, again=None),
    "broken": Experiment(
        points=[
            *({"model": PUBLISHED, "change": change} for change in CHANGES),
            {"model": SMALL, "change": CHANGES[2]},
        ],
        run=broken,
        again={"model": SMALL, "change": CHANGES[2]},
    ),
    "retrieval": Experiment(
        points=[
            *({"model": name, "seed": 0} for name in (*sentences.WORD_SEARCHES, PUBLISHED, SMALL)),
            *seeded(SEEDS, model=UNTRAINED),
            *seeded(SEEDS, model=UNTRAINED_SMALL),
        ],
        run=retrieval,
        again=AGAIN,
    ),
    "contrast": Experiment(
        points=[point for one in PARTNERS for point in seeded(SEEDS, partners=one)],
        run=contrast,
        again=None,
    ),
    "asked": Experiment(
        points=[
            {"model": model, "question": question}
            for model in (PUBLISHED, SMALL)
            for question in sentences.QUESTIONS
        ],
        run=asked,
        again={"model": SMALL, "question": sentences.QUESTIONS[0]},
    ),
    "meaning": Experiment(points=BOTH, run=meaning, again={"model": SMALL}),
    "identifiability": Experiment(points=SAMPLES, run=identifiability, again=AGAIN),
    "effective": Experiment(points=SAMPLES, run=effective, again=AGAIN),
    "attribution": Experiment(points=SAMPLES, run=attribution, again=AGAIN),
}
