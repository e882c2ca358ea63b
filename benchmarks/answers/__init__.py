"""What answers to open questions say of things that no command trains: one module a lesson.

What is trained for an answer is recorded by `attention.experiments`.
"""
