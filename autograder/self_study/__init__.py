"""What students run at home, without a sandbox: check, collect, status. Read check.py first."""
