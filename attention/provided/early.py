"""A translator that is still in doubt: the small Transformer of lesson 10 after 60 steps."""

from attention.provided import trainings, translators
from attention.provided.data import Corpus
from attention.transformer import Transformer

STEPS = 60


def early_translator(corpus: Corpus, seed: int = translators.SEED) -> tuple[Transformer, float]:
    """Train a small Transformer for 60 steps; returns it, ready to translate, and its last loss.

    seed  of its weights and of its batches

    While nbgrader runs the notebook, 5 steps are taken.
    """
    model = trainings.fresh(corpus, seed)
    batches = corpus.batches(translators.BATCH, STEPS, seed)
    losses = translators.train(model, batches, STEPS)
    return model.eval(), losses[-1]
