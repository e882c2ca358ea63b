"""`python -m attention.chat`: a published chat model answers. Read __main__.py first."""
