"""Wrong answers that the checks must reject, and right ones that they must accept."""
