"""A second set of wrong answers, written from the lessons' texts alone: how much is a new one told?

Nothing of them may ever become a stored mistake, a diagnosis or a check: they measure what the
course tells an answer that its authors have never seen. `python -m tests.locked --second`.
"""
