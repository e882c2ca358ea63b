"""What a class has of the course."""
