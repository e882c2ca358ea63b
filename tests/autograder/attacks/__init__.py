"""Attacks on the grading: one small notebook builder for each, with wrong answers throughout."""

from . import (  # noqa: F401  (each module registers its attacks)
    damaged,
    disk_thieves,
    edited,
    exhaustion,
    exits,
    guesses,
    interpreter,
    memory_thieves,
    network,
    prisoners,
    relay,
    replaced,
    results,
    unholdable,
    vandals,
    wire,
)
from .paper import ATTACKS, Attack, Paper, Traps

__all__ = ["ATTACKS", "Attack", "Paper", "Traps"]
