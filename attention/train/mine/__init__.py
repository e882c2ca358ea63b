"""`--mine`: a learner's pieces are tried before a training uses them. Read using.py first."""
