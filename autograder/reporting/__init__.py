"""What a graded class shows: a page to read, drawings, and what its answers have in common.

Read page.py first.
"""
