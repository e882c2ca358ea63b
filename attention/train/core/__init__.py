"""The model, one step, and the loop over steps, on every device. Read trainer.py first."""
