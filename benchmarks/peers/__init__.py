"""The library beside its peers: ``make bench-peers``; read __main__.py first.

The peers are nn.Transformer, x-transformers and transformers. The last two are no dependencies of
the project: who is not installed is left out, with a sentence.
"""
