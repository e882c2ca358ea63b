"""Many notebooks side by side, on this machine or on a cluster. Begin: batch."""
