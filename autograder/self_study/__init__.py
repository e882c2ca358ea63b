"""What a student runs on their own machine: check, collect, status. No sandbox. Read check.py first."""
