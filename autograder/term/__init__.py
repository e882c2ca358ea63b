"""What a class has of the course: class/course.toml. Read course_file.py first.

`course_file` reads it, `adapt` makes a notebook of it, and `class_notebooks` refuses what does not
go together and writes those that the class is graded by. `plan` shows the term as a table.
"""
