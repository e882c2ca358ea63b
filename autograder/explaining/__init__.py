"""Why an answer lost points: a call that tells it from the right one, as a program.

Read explanation.py first: ``replay`` judges the answer once more, ``program`` makes programs.
"""
