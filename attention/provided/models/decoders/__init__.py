"""Decoders of today: weights of a Llama, the writer that ships. Read small_writer.py first."""
