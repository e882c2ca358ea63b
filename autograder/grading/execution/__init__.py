"""One notebook is graded: put together, run in the sandbox, checked outside. Read worker.py first."""
