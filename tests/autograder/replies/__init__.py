"""Replies that no right answer gives, sent to every check: `python -m tests.autograder.replies`."""
