"""Figures in one style, sliders, and an explorer of attention maps. Read plots.py first."""
