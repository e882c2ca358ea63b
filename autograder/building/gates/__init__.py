"""The gates that a lesson passes before it is done. Read verify.py first."""
