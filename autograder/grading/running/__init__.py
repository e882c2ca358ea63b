"""Many notebooks side by side, on this machine or on a cluster. Read batch.py first."""
