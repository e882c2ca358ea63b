"""A device to rehearse on: it refuses what a GPU refuses. Read rehearsal.py first."""
