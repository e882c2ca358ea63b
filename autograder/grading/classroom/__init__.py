"""A class on disk: its folders, its gradebook, and what its scores say. Begin: folders."""
