"""The gates that a lesson passes before it is done. Begin: verify."""
