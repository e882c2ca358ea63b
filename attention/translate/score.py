"""`--score`: how good a run's translations of one file are, beside the references in another."""

import time
from pathlib import Path
from typing import Any

import torch

from attention.provided.data.tokens import pad
from attention.train import evaluation
from attention.train.translate_run import Run, encode, rows_at_once, translate
from attention.training import Evaluation
from attention.translate.lines import LinesError, whole

BATCH = 512  # sentences that are translated at once, at most; progress is told after each


def score(
    run: Run,
    source: Path,
    reference: Path,
    beam: int,
    alpha: float,
    max_length: Any,
    tokenize: str,
) -> dict[str, Any]:
    """Translate a file; returns BLEU, its signature, the loss and all else that is measured.

    source, reference  files whose lines i belong together
    beam, alpha, max_length, tokenize  as the options have them
    raises             LinesError, in one sentence, for a text that cannot be read or translated
    """
    texts, references = whole(source), whole(reference)
    if len(texts) != len(references):
        raise LinesError(
            f"{source} has {len(texts)} lines and {reference} {len(references)}: line i of one "
            "must belong to line i of the other"
        )
    read = _encoded(run, texts, source)
    begin = time.perf_counter()
    found: list[str] = []
    for start in range(0, len(read), BATCH):
        ids = translate(run, read[start : start + BATCH], beam, alpha, max_length)
        found += [run.target.decode(one) for one in ids]
    seconds = time.perf_counter() - begin
    loss, perplexity = _loss(run, read, references)
    return {
        "sentences": len(found),
        "seconds": round(seconds, 1),
        **evaluation.bleu(found, references, tokenize),
        "exact": round(evaluation.exact(found, references), 4),
        "loss": loss,
        "perplexity": perplexity,
        "beam": beam,
        "alpha": alpha,
    }


def _encoded(run: Run, texts: list[str], path: Path) -> list[list[int]]:
    ids = []
    for number, text in enumerate(texts, 1):
        try:
            ids.append(encode(run, text))
        except ValueError as error:
            raise LinesError(f"{path}, line {number}: {error}") from None
    return ids


def _loss(run: Run, read: list[list[int]], references: list[str]) -> tuple[Any, Any]:
    """The loss in nats per token of the references, and its exponential, if all can be encoded."""
    try:
        targets = [run.target.encode(text) for text in references]
    except (KeyError, ValueError):
        return "not measured: a reference has a token that is not in the vocabulary", "not measured"
    order = sorted(range(len(read)), key=lambda i: (len(read[i]), len(targets[i])))
    step = rows_at_once([*read, *targets])
    batches = (
        tuple(
            pad([side[i] for i in order[start : start + step]]).to(run.device)
            for side in (read, targets)
        )
        for start in range(0, len(order), step)
    )
    loss = Evaluation(run.model)(batches).item()
    return round(loss, 4), round(float(torch.tensor(loss).exp()), 3)
