"""Time and memory of a training, saved (read acceleration.py first); and of writing."""
