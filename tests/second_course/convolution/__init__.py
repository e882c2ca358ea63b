"""Convolution in three functions: one module per lesson."""
