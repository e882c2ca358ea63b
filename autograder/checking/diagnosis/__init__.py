"""Why an answer fails: sentences that are true of all its replies. Read diagnose.py first."""
