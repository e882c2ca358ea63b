"""How good a model is: what is measured at the end of a training."""

import json
import time
from collections.abc import Sequence
from datetime import date
from typing import Any

import sacrebleu
import torch

from attention.decoding import beam_search
from attention.provided.data.tokens import pad
from attention.train.core.devices import describe
from attention.train.core.trainer import Trainer
from attention.train.corpora.texts import Corpus
from attention.train.corpora.token_ids import Pairs
from attention.train.runs.run_folder import RunFolder
from attention.train.runs.settings import MODERN, Settings
from attention.transformer import Transformer
from autograder.terminal_output import printable


def measure(
    model: Any, corpus: Corpus, chosen: Settings, training: Trainer, seconds: float
) -> dict[str, Any]:
    """Say what the training took, and judge its model; returns a dict of all that was measured."""
    result: dict[str, Any] = {
        "corpus": chosen.corpus,
        "metric": corpus.metric,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "steps": training.done,
        "training_seconds": round(seconds, 1),
        "cpu_seconds": round(training.cpu_seconds, 1),  # of this process
        "tokens_per_second": round(sum(int(row["tokens"]) for row in training.rows) / seconds),
        "device": describe(training.device),
        "date": date.today().isoformat(),
        "torch": torch.__version__,
    }
    if chosen.model == MODERN:
        from attention.train.write_run import judge  # lesson 20, which not every copy has

        return result | judge(corpus, chosen, training)
    return result | judge_translations(model, corpus, chosen)


def judge_translations(model: Transformer, pairs: Pairs, chosen: Settings) -> dict[str, Any]:
    """Translate validation and test sentences; returns how good it is."""
    result: dict[str, Any] = {}
    for split in ("val", "test"):
        begin = time.perf_counter()
        judged = slice(chosen.judged or None)
        references = [target for _, target in pairs.texts[split][judged]]
        print(f"translating {len(references)} sentences to judge them: {split}", flush=True)
        texts = translate(model, pairs, pairs.ids[split][judged], chosen.beam, chosen.alpha)
        result[f"{split}_sentences"] = len(texts)
        result[f"{split}_seconds"] = round(time.perf_counter() - begin, 1)
        if pairs.metric == "BLEU":  # of tokenised texts, whose words are counted as they stand
            metric = sacrebleu.BLEU(tokenize="none", force=True)
            result[split] = round(metric.corpus_score(texts, [references]).score, 2)
            result["signature"] = str(metric.get_signature())
        else:
            right = sum(a == b for a, b in zip(texts, references, strict=True))
            result[split] = right / len(texts)
    return result


def translate(
    model: Transformer,
    pairs: Pairs,
    ids: Sequence[tuple[list[int], list[int]]],
    beam: int = 5,
    alpha: float = 1.0,
) -> list[str]:
    """Translate by beam search; ids are pairs whose sources are read. Returns the texts."""
    device = next(model.parameters()).device
    source = pad([source for source, _ in ids]).to(device)
    longest = max(len(target) for _, target in pairs.ids["train"])
    found = beam_search(model, source, beam, alpha, max_length=round(1.2 * longest))
    return [pairs.target.decode(row) for row in found.tolist()]


def report(result: dict[str, Any], folder: RunFolder) -> None:
    """Store and print what was measured."""
    folder.write("result.json", json.dumps(result, indent=1).encode() + b"\n")
    for name, value in result.items():
        print(printable(f"{name:>18}  {value}"))
    print(f"everything is in {folder.path}")
