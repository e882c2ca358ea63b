"""Models and parts of them, ready-made, and files of weights. Read translators.py first."""
