"""What runs inside the sandbox, beside the student's code, and imports nothing from outside.

Read answer.py first, the one door between a check and an answer; zygote and server start it.
"""
