"""One hand-in: how it is read, whose lesson it is, and what is kept of it. Read submission.py first."""
