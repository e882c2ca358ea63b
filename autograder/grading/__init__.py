"""Grading of submissions: students' code runs in a sandbox, the checks run outside.

``single.grade_notebook`` grades one file, ``autograder.commands.grade`` a class, and ``nbgrader_steps`` is
the same for nbgrader's own commands.
"""
