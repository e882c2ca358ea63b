"""What a computation takes and a model consists of. Read timing.py first, then memory.py."""
