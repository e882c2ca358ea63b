"""`python -m attention.translate`: lines of text, and BLEU. Read __main__.py first."""
