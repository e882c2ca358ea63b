"""One hand-in: how it is read, of which lesson, and what is kept. Read submission.py first."""
