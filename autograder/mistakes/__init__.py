"""Named wrong answers and right answers written differently, one module per lesson."""
