"""Between a class and the grading: roster, hand-ins that came back, due dates, grades to the LMS.

Read receiving.py first, which puts what came back in place: ``search`` finds the files in folders
and zips, ``filename_clues`` reads what their names say, ``roster`` knows the students. ``grades``
gives scores back, in the CSV files of an LMS, which ``lms_csv`` reads and fills in.
"""
