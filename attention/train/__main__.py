"""Train the course's Transformer: `python -m attention.train numbers`, or multi30k.

`python -m attention.train text FILES…` trains lesson 20's language model on texts of one's own. The
same command runs on a GPU, on Apple's MPS and on a CPU, and on several of them:
`torchrun --nproc-per-node 2 -m attention.train multi30k`.
"""

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import distributed

from attention.provided.models.model_file import ModelFileError
from attention.train.command import complain
from attention.train.core.devices import choose_device, join
from attention.train.core.step import rank, world_size
from attention.train.core.trainer import Diverged, Trainer
from attention.train.corpora import multi30k, texts, token_ids
from attention.train.corpora.multi30k import CorpusError
from attention.train.corpora.texts import Corpus
from attention.train.evaluation import measure, report
from attention.train.mine import using
from attention.train.mine.trial import Trial
from attention.train.pieces import collected
from attention.train.pieces.collected import Pieces
from attention.train.runs import settings
from attention.train.runs.run_folder import RunFolder, RunFolderError
from attention.train.runs.settings import Parser, Settings
from autograder.terminal_output import printable, replace_what_cannot_be_shown

ERRORS = (CorpusError, Diverged, ModelFileError, RunFolderError, ValueError)  # say what to do


def parser() -> Parser:
    """The argument parser of the command."""
    made = Parser(
        prog="python -m attention.train",
        description="Train the course's Transformer on the numbers in words or on Multi30k, or "
        "a language model on texts of your own. Weights, metrics and learning curves are kept in a "
        "folder, from which --resume goes on.",
    )
    made.add_argument("corpus", nargs="?", default="numbers", choices=token_ids.NAMES)
    # Without the empty default argparse would say that a file is required.
    made.add_argument(
        "files",
        nargs="*",
        default=[],
        metavar="FILE",
        help="texts for text, in UTF-8: the last tenth of all, at most 200 000 characters, is held "
        "out (with --resume: those with which the training began)",
    )
    made.add_argument("--folder", type=Path, help="of this training (default: runs/CORPUS)")
    made.add_argument("--resume", action="store_true", help="go on with the training in the folder")
    made.add_argument("--data", type=Path, default=multi30k.FOLDER, help="folder of Multi30k")
    made.add_argument("--device", help="cuda, mps or cpu (default: the first there is)")
    made.add_argument(
        "--mine",
        type=Path,
        nargs="?",
        const=Path(collected.FOLDER),
        metavar="FOLDER",
        help="train with your own pieces, from `autograder collect` (default folder: mine)",
    )
    made.add_argument("--export", type=Path, help="copy the final weights to this file")
    settings.add_options(made)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Train; returns the exit status."""
    replace_what_cannot_be_shown()
    options = parser().parse_intermixed_args(arguments)
    try:
        return run(options)
    except ERRORS as error:
        return complain(parser().prog, str(error))
    except Exception as error:
        if not (said := using.blame(error)):
            raise
        return complain(parser().prog, said)
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
    if options.files and options.corpus != "text":
        raise ValueError(f"{options.corpus} takes no FILES: text {options.files[0]} does")
    chosen = resume(options, folder) if options.resume else settings.from_options(options)
    corpus = read(options, chosen, folder)
    first = rank() == 0
    pieces = prepare_pieces(options, chosen, corpus, folder, device)
    if first:
        begin(folder, chosen, corpus, pieces, options.resume)
    if distributed.is_initialized():
        distributed.barrier()
    training = Trainer(chosen, corpus, folder, device, options.resume)
    seconds = training.run()
    model = training.finish()
    if first:
        report(measure(model, corpus, chosen, training, seconds), folder)
        if options.export:
            RunFolder(options.export.parent).write(
                options.export.name, (folder.path / "model.safetensors").read_bytes()
            )
    return 0


def begin(
    folder: RunFolder, chosen: Settings, corpus: Corpus, pieces: Pieces | None, resumed: bool
) -> None:
    """Make the folder of a training, with all that its first save will need to be used."""
    if not resumed:
        folder.begin(dataclasses.asdict(chosen))
        if pieces is not None:
            using.keep(pieces, folder)
    folder.keep_vocabularies(corpus.description())
    for note in corpus.notes:
        print(printable(note), flush=True)


def prepare_pieces(
    options: argparse.Namespace,
    chosen: Settings,
    corpus: Corpus,
    folder: RunFolder,
    device: torch.device,
) -> Pieces | None:
    """Put a student's pieces in use, if the training is to have them, and say which these are.

    A training that goes on has those with which it began. Raises MineError, a ValueError.
    """
    if options.mine is not None and (world_size() > 1 or chosen.compile):
        raise ValueError("--mine trains in one process and without --compile: your pieces run")
    if options.resume:
        kept = using.use_kept(folder.path)
        if options.mine is not None and not kept:
            raise ValueError(
                f"the training in {folder.path} began without --mine: resume without it, or train "
                "in another --folder"
            )
        if kept:
            print(f"with yours: {', '.join(piece.name for piece in kept)}")
        return None
    collected.take_back()
    if options.mine is None:
        return None
    folder.refuse_second()
    pieces = collected.load(options.mine)
    print(f"trying your pieces in {pieces.folder} …", flush=True)
    trial = Trial(chosen, corpus, device, pieces)
    used = using.choose(trial)
    print(using.report(pieces, used, using.needed(chosen), "a training"))
    print(using.step_times(trial, used), flush=True)
    return pieces


def resume(options: argparse.Namespace, folder: RunFolder) -> Settings:
    """The settings of the training in the folder; ValueError if an option says otherwise."""
    folder.refuse_incomplete()
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


def read(options: argparse.Namespace, chosen: Settings, folder: RunFolder) -> Corpus:
    """The corpus; of a training that goes on, the text with which it began."""
    if chosen.corpus == "text":
        kept = folder.vocabularies() if options.resume else {}
        return texts.read(options.files, chosen, kept)
    if chosen.corpus == "numbers":
        return token_ids.numbers()
    return token_ids.translations(chosen.merges, options.data)


if __name__ == "__main__":
    sys.exit(main())
