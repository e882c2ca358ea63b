"""What checks and stored mistakes are written with. Begin: registry, then expect."""
