"""Grading of submissions: students' code runs in a sandbox, the checks run outside.

From below: ``notebook`` is one hand-in and what is kept of it, ``execution`` grades it,
``classroom`` is a class's folders and gradebook, ``running`` grades many side by side (read
running/batch.py first), ``feedback`` makes the pages that students read.
``nbgrader_steps`` is the same for nbgrader's own commands.
"""
