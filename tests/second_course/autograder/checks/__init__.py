"""The checks of the lessons, one module for each."""
