"""What checks and stored mistakes are written with. Read registry.py first, then expect.py."""
