"""Between a class and the grading: roster, hand-ins that came back, and grades to the LMS.

Read receiving.py first, which puts what came back in place: ``search`` finds the files in folders
and zips, ``hand_in`` says whose each is, ``roster`` knows the students. ``grades`` gives scores
back, in the CSV files of an LMS, which ``lms_csv`` reads and fills in.
"""
