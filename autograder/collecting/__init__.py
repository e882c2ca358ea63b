"""Between a class and the grading: roster, hand-ins that came back, due dates, grades to the LMS.

``table`` reads and fills in the CSV files of an LMS, ``roster`` knows the students, ``search``
finds files in folders and zips, ``clues`` reads what their names say, ``receiving`` puts them in
place and ``grades`` gives the scores back.
"""
