"""Attention, built piece by piece: one module per lesson, in the order of the course.

Read getting_started.py first, and the others in the order of the lessons in ``source/``.

Each module holds the pieces that its lesson asks the student to write. A later module imports
the earlier ones, so reading the modules in order is reading the course without its prose.

Not every piece is imported again. No later module needs those of lessons 01, 04 and 05: these
explain an idea that returns in another form, kernels as scores and single heads as many. And no
lesson runs on what a student wrote before: each exercise is graded on its own, with the pieces of
this library around it, so that one mistake costs one exercise, and a lesson that somebody missed
does not close the next.

`provided` is what lessons hand out ready-made, `experiments` the trainings and recorded results
of each lesson; `train` is the command `python -m attention.train`,
`translate` the command `python -m attention.translate`, and so are `write`, `search`, `chat` and
`teach`.
"""
