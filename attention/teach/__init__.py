"""`python -m attention.teach`: a chat model learns from questions and answers. See __main__.py."""
