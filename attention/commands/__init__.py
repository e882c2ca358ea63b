"""Commands of this course, which `autograder` has beside its own. Read data.py first."""
