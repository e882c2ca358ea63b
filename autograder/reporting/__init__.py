"""What a graded class shows: a page to read, a table, and what its wrong answers have in common.

Read page.py first.
"""
