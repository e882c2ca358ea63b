"""Attention, built piece by piece: one module per lesson, in the order of the course.

Each module holds the pieces that its lesson asks the student to write. A later module imports
the earlier ones, so reading the modules in order is reading the course without its prose.
"""
