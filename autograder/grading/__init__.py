"""Grading of submissions: students' code runs in a sandbox, the checks run outside.

``single.grade_notebook`` grades one file, ``batch`` a class, ``nbgrader_steps`` is the same for
nbgrader's own commands, and ``self_check`` is what students run on their own machine.
"""
