"""`--mine`: trainings with a student's own pieces. Read collected.py first, then using.py."""
