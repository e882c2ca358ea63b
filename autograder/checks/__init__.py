"""The graded checks, one module per lesson: plain functions of a student's callable."""
