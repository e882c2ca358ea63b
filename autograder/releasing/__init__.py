"""What students get: their lessons, the library of the lessons before, and no solution.

Read release_files.py first, then solution_leaks.py, which searches all of it.
"""
