"""What stands on the lessons: a module for each, of its name. Read recorded.py first.

A lesson's module holds its tasks and trainings, EXPERIMENTS that are recorded, those of the
ANSWERS_TO_QUESTIONS; docs/evidence.md says what they are run for. It imports earlier lessons'
modules only: pieces of its own lesson come in as arguments, in a notebook the learner's.

numbers_training.py is of no lesson: it holds the pieces of a training that lessons 11 to 14
share. decoder_changes.py belongs to lesson 20; speculative_decoding.py, long_texts.py and
low_rank.py to lesson 21.
"""
