"""`python -m attention.search`: a search in one's own notes. Read __main__.py first."""
