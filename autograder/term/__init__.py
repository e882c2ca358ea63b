"""What a class has of the course: class/course.toml. Read course_file.py first.

`course_file` reads it, `fit` refuses what does not go together, `adapt` makes a notebook of it, and
`class_notebooks` writes those that the class is graded by. `plan` shows the term as a table, and
`ready` holds plans to begin with.
"""
