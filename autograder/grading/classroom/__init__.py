"""A class on disk: its folders, its gradebook, and what its scores say. Read folders.py first."""
