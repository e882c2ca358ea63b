"""`python -m attention.write`: a language model goes on with a prompt. Read __main__.py first."""
