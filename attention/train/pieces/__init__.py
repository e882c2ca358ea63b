"""What a learner has passed: read, and put in the library's places. Read collected.py first."""
