"""Why an answer lost points: the call that failed, as a program, and what is right there.

Read explanation.py first.
"""
