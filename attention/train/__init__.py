"""`python -m attention.train`, and its rooms. Read __main__.py first, then trainer.py, step.py."""
