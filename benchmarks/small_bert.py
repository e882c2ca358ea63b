"""Train the small stand-in for lesson 19's published model: `data/small_bert.safetensors`.

    python -m benchmarks.small_bert [--to FILE] [--steps 1500] [--seed 0]

It learns from the docstrings of lesson 15, without those held out, which two texts belong together:
a summary and its body, or two excerpts of one body. The others of a batch are the wrong ones, as
for the published model. Ten minutes on one core. Then it prints how often it finds the body of a
held-out summary.
"""

import argparse
import random
import sys
from pathlib import Path

import torch
from torch.nn import functional as F

from attention import published_model as lesson
from attention.provided.data import docstrings
from attention.provided.data.sentences import held_out, share_found
from attention.provided.data.tokens import PAD, pad
from attention.provided.models import model_file
from attention.provided.models.bert import files
from attention.provided.models.bert.tokenizer import WordPieceTokenizer
from attention.published_model import PublishedEncoder, sentence_vectors, wordpiece

PIECES = 1600
LENGTH = 64
SIZES = {"d_model": 48, "n_heads": files.N_HEADS, "d_ff": 96, "n_layers": 3}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
UNKNOWN = SPECIAL.index("[UNK]")
BATCH, RATE, HIDDEN, TEMPERATURE = 128, 2e-3, 0.1, 0.05


def main(arguments=None):
    """Train, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=files.STAND_IN)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    train, _ = docstrings.split(docstrings.load())
    tokenizer = WordPieceTokenizer(vocabulary(train), wordpiece)
    torch.manual_seed(options.seed)
    model = PublishedEncoder(len(tokenizer.vocabulary), LENGTH, **SIZES)
    for table in (model.embeddings.words, model.embeddings.positions, model.embeddings.types):
        torch.nn.init.normal_(table.weight, std=0.02)
    print("before", *found(model, tokenizer))
    learn(model, tokenizer, train, options.steps, options.seed)
    print("after ", *found(model, tokenizer))
    store(options.to, model, tokenizer.vocabulary, options.steps)
    print(f"written to {options.to}")
    return 0


def vocabulary(rows):
    """Return PIECES word pieces, by the `tokenizers` library."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=PIECES, special_tokens=SPECIAL, show_progress=False, limit_alphabet=60
    )
    made.train_from_iterator((f"{row.summary} {row.body}" for row in rows), trainer)
    return sorted(made.get_vocab(), key=made.get_vocab().get)


def learn(model, tokenizer, rows, steps, seed):
    """Learn which of a batch's texts belong together."""
    draw = random.Random(seed)
    encoded = [
        (
            tokenizer.encode(row.summary, LENGTH),
            tokenizer.encode(row.body, LENGTH),
            tokenizer.encode(row.body, 10_000)[1:-1],
        )
        for row in rows
    ]
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, RATE, total_steps=steps, pct_start=0.1
    )
    for step in range(1, steps + 1):
        pairs = [pair(draw, *row) for row in draw.sample(encoded, BATCH)]
        loss = contrast(model, *(hide(pad(side)) for side in zip(*pairs, strict=True)))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)


def pair(draw, summary, body, pieces):
    """Two texts that belong together: summary and body, or two excerpts of the body."""
    if draw.random() < 0.6:
        return summary, body
    return excerpt(draw, pieces), excerpt(draw, pieces)


def excerpt(draw, pieces):
    """A quarter to two thirds of a body's pieces, in one run."""
    T = len(pieces)
    length = draw.randint(max(4, T // 4), max(5, 2 * T // 3))
    start = draw.randint(0, max(0, T - length))
    first, last = SPECIAL.index("[CLS]"), SPECIAL.index("[SEP]")
    return [first, *pieces[start : start + length][: LENGTH - 2], last]


def hide(ids):
    """Make a tenth of the pieces unknown: a text is more than any of its words."""
    hidden = (torch.rand(ids.shape) < HIDDEN) & (ids >= len(SPECIAL))
    return ids.masked_fill(hidden, UNKNOWN)


def contrast(model, one, other):
    """Cross-entropy of which text of the other side belongs to each, in both directions."""
    cosines = vectors(model, one) @ vectors(model, other).T  # (B, B)
    own = torch.arange(len(cosines))
    logits = cosines / TEMPERATURE
    return (F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)) / 2


def vectors(model, ids):
    """Sentence vectors of rows of ids: (B, d_model)."""
    return sentence_vectors(model(ids), ids != PAD)


@torch.inference_mode()
def found(model, tokenizer):
    """For how many held-out summaries the own body is the nearest, and among ten: shares."""
    both = (vectors(model, tokenizer.batch(texts, LENGTH)) for texts in held_out())
    return [round(share, 3) for share in share_found(*both)]


def store(path, model, pieces, steps):
    """Write the weights with 16 bits, by the names that a published BERT has for them."""
    weights = {}
    for name, weight in model_file.weights_of(model).items():
        for theirs, ours in reversed(lesson.NAMES.items()):
            name = name.replace(ours, theirs)
        weights[name] = weight.half()
    model_file.save(path, weights, {"vocabulary": pieces, "steps": steps})


if __name__ == "__main__":
    sys.exit(main())
