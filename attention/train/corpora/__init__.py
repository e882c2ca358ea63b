"""What is trained on, as token ids: the numbers, and Multi30k. Read token_ids.py first."""
