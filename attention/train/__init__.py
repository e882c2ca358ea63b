"""`python -m attention.train`, and its rooms. Read __main__.py first, then core/trainer.py."""
