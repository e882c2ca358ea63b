"""Corpora and tasks, and nothing that is trained. Read tokens.py first, then numbers.py."""
