"""Settings that students choose, measured here under a budget, and ranked. Read board.py first."""
