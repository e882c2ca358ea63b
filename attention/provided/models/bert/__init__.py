"""Weights of a BERT: the published ones, and a small stand-in. Read files.py first."""
