"""The sandbox: students' code runs here, apart from the grader and from each other.

Read sandbox.py first; what runs behind its wall is in ``inside``.
"""
