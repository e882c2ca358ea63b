"""How an answer is judged, and why it fails. Read run_check.py first.

``toolbox`` is what checks are written with, ``asking`` puts questions to an answer and compares its
replies, ``diagnosis`` finds the sentence that says why it fails.
"""
