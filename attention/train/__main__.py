"""Train the course's Transformer: `python -m attention.train numbers`, or multi30k.

The same command runs on a GPU, on Apple's MPS and on a CPU, and on several of them:
`torchrun --nproc-per-node 2 -m attention.train multi30k`.
"""

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

import sacrebleu
import torch
from torch import distributed

from attention.decoding import beam_search
from attention.provided import mine
from attention.provided.data import pad
from attention.provided.mine import Pieces
from attention.provided.model_file import ModelFileError
from attention.train import corpora, multi30k, own, settings
from attention.train.corpora import Pairs
from attention.train.multi30k import CorpusError
from attention.train.run_folder import RunFolder, RunFolderError
from attention.train.settings import Settings
from attention.train.step import rank, world_size
from attention.train.trainer import Diverged, Trainer
from attention.train.translate import save_drawing, translate_with
from attention.transformer import Transformer

ERRORS = (CorpusError, Diverged, ModelFileError, RunFolderError, ValueError)  # say what to do


class Parser(argparse.ArgumentParser):
    """Says in one sentence what is wrong with the options."""

    def error(self, message: str) -> NoReturn:
        """Print the message and end the program."""
        self.exit(2, f"{self.prog}: {message} (--help lists the options)\n")


def parser() -> Parser:
    """The argument parser of the command."""
    made = Parser(
        prog="python -m attention.train",
        description="Train the course's Transformer on the numbers in words or on Multi30k. "
        "Weights, metrics and learning curves are kept in a folder, from which --resume goes on.",
    )
    made.add_argument("corpus", nargs="?", default="numbers", choices=corpora.NAMES)
    made.add_argument("--folder", type=Path, help="of this training (default: runs/CORPUS)")
    made.add_argument("--resume", action="store_true", help="go on with the training in the folder")
    made.add_argument("--data", type=Path, default=multi30k.FOLDER, help="folder of Multi30k")
    made.add_argument("--device", help="cuda, mps or cpu (default: the first there is)")
    made.add_argument(
        "--mine",
        type=Path,
        nargs="?",
        const=Path(mine.FOLDER),
        metavar="FOLDER",
        help="train with your own pieces, from `autograder collect` (default folder: mine)",
    )
    made.add_argument(
        "--translate", nargs="+", metavar="TEXT", help="do not train: translate with the run there"
    )
    made.add_argument("--draw", type=Path, metavar="FILE", help="and draw the first's attention")
    made.add_argument("--export", type=Path, help="copy the final weights to this file")
    settings.add_options(made)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Train; returns the exit status."""
    options = parser().parse_args(arguments)
    try:
        return run(options)
    except ERRORS as error:
        print(f"{parser().prog}: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        if not (said := own.blame(error)):
            raise
        print(f"{parser().prog}: {said}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; --resume goes on from the last save", file=sys.stderr)
        return 130
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()


def run(options: argparse.Namespace) -> int:
    """Train with parsed options, measure and report."""
    device = choose_device(options.device)
    join(device)
    folder = RunFolder(options.folder or Path("runs") / options.corpus)
    if options.translate:
        found = translate_with(folder.path, options.translate, device)
        if options.draw:
            save_drawing(found[0], options.draw)
        return 0
    if options.draw:
        raise ValueError("--draw shows a translation: give its text with --translate")
    chosen = resume(options, folder) if options.resume else settings.from_options(options)
    pairs = read(options, chosen)
    first = rank() == 0
    pieces = prepare_pieces(options, chosen, pairs, folder, device)
    if first and not options.resume:
        folder.begin(dataclasses.asdict(chosen))
        if pieces is not None:
            own.keep(pieces, folder)
    if distributed.is_initialized():
        distributed.barrier()
    training = Trainer(chosen, pairs, folder, device, options.resume)
    seconds = training.run()
    model = training.finish()
    if first:
        report(measure(model, pairs, chosen, training, seconds), folder)
        if options.export:
            RunFolder(options.export.parent).write(
                options.export.name, (folder.path / "model.safetensors").read_bytes()
            )
    return 0


def prepare_pieces(
    options: argparse.Namespace,
    chosen: Settings,
    pairs: Pairs,
    folder: RunFolder,
    device: torch.device,
) -> Pieces | None:
    """Put a student's pieces in use, if the training is to have them, and say which these are.

    A training that goes on has those with which it began. Raises MineError, a ValueError.
    """
    if options.mine is not None and (world_size() > 1 or chosen.compile):
        raise ValueError("--mine trains in one process and without --compile: your pieces run")
    if options.resume:
        kept = own.use_kept(folder.path)
        if options.mine is not None and not kept:
            raise ValueError(
                f"the training in {folder.path} began without --mine: resume without it, or train "
                "in another --folder"
            )
        if kept:
            print(f"with yours: {', '.join(piece.name for piece in kept)}")
        return None
    mine.take_back()
    if options.mine is None:
        return None
    folder.refuse_second()
    pieces = mine.load(options.mine)
    print(f"trying your pieces in {pieces.folder} …", flush=True)
    own.report(pieces, *own.choose(pieces, chosen, pairs, device), chosen)
    return pieces


def best_device() -> torch.device:
    """CUDA if there is one, else Apple's MPS, else the CPU."""
    for kind in ("cuda", "mps"):
        if getattr(torch, kind).is_available():
            return torch.device(kind)
    return torch.device("cpu")


def choose_device(name: str | None) -> torch.device:
    """Return the torch.device called ``name``, or the best there is; ValueError if it is absent."""
    if name is None:
        device = best_device()
    else:
        if name not in ("cuda", "mps", "cpu"):
            raise ValueError(f"--device must be cuda, mps or cpu, not {name!r}")
        device = torch.device(name)
        if name != "cpu" and not getattr(torch, name).is_available():
            raise ValueError(f"--device {name}: this machine, or this PyTorch, has none")
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
        torch.set_float32_matmul_precision("high")  # TF32 where something stays in float32
    return device


def join(device: torch.device) -> None:
    """Join the processes that torchrun started, if it did."""
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")


def resume(options: argparse.Namespace, folder: RunFolder) -> Settings:
    """The settings of the training in the folder; ValueError if an option says otherwise."""
    stored = settings.stored(folder.config())
    for field in dataclasses.fields(Settings):
        value, was = getattr(options, field.name), getattr(stored, field.name)
        if value is not None and value != was:
            said = "the corpus" if field.name == "corpus" else settings.option(field.name)
            raise ValueError(
                f"{said} was {was} when the training in {folder.path} began, now it is {value}: "
                "resume with the same settings, or train in another --folder"
            )
    return stored


def read(options: argparse.Namespace, chosen: Settings) -> Pairs:
    """The pairs of the corpus."""
    if chosen.corpus == "numbers":
        return corpora.numbers()
    return corpora.translations(chosen.merges, options.data)


def measure(
    model: Transformer, pairs: Pairs, chosen: Settings, training: Trainer, seconds: float
) -> dict[str, Any]:
    """Translate validation and test sentences; returns a dict of all that was measured."""
    result: dict[str, Any] = {
        "corpus": chosen.corpus,
        "metric": pairs.metric,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "steps": training.done,
        "training_seconds": round(seconds, 1),
        "cpu_seconds": round(training.cpu_seconds, 1),  # of this process
        "tokens_per_second": round(sum(int(row["tokens"]) for row in training.rows) / seconds),
        "device": describe(training.device),
        "date": date.today().isoformat(),
        "torch": torch.__version__,
    }
    for split in ("val", "test"):
        begin = time.perf_counter()
        judged = slice(chosen.judged or None)
        references = [target for _, target in pairs.texts[split][judged]]
        texts = translate(model, pairs, pairs.ids[split][judged], chosen.beam, chosen.alpha)
        result[f"{split}_sentences"] = len(texts)
        result[f"{split}_seconds"] = round(time.perf_counter() - begin, 1)
        if pairs.metric == "BLEU":
            metric = sacrebleu.BLEU(tokenize="none", force=True)
            result[split] = round(metric.corpus_score(texts, [references]).score, 2)
            result["signature"] = str(metric.get_signature())
        else:
            equal = sum(a == b for a, b in zip(texts, references, strict=True))
            result[split] = equal / len(texts)
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


def describe(device: torch.device) -> str:
    """What the training ran on, for the table of results."""
    processes = world_size()
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    else:
        name = f"{device.type}, {torch.get_num_threads()} threads"
    return name if processes == 1 else f"{processes} processes: {name} each"


def report(result: dict[str, Any], folder: RunFolder) -> None:
    """Store and print what was measured."""
    folder.write("result.json", json.dumps(result, indent=1).encode() + b"\n")
    for name, value in result.items():
        print(f"{name:>18}  {value}")
    print(f"everything is in {folder.path}")


if __name__ == "__main__":
    sys.exit(main())
