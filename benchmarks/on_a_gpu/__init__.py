"""What docs/training.md says of a GPU, measured by one command: ``benchmarks/on_a_gpu.sh``.

running    commands that are stopped when their time is over; what came of them is kept
steps      what is measured, by which commands, and with which share of the time
corpus     a small corpus, for a rehearsal
readings   what the commands printed, as numbers
rows       the Markdown that is made of them
"""
