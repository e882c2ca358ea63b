"""Attacks on the grading: one small notebook builder for each, with wrong answers throughout."""

from . import (  # noqa: F401  (each module registers its attacks)
    damaged,
    edited,
    exhaustion,
    exits,
    interpreter,
    network,
    prisoners,
    relay,
    replaced,
    results,
    thieves,
    vandals,
    wire,
)
from .paper import ATTACKS, Attack, Paper, Traps

__all__ = ["ATTACKS", "Attack", "Paper", "Traps"]
