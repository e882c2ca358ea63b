"""Figures in one style, some that move, and an explorer of attention maps. Read plots.py first."""
