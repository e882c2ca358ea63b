"""Lesson 08: which rows of sinusoidal positions are alike, by the base of their wavelengths."""

import torch

ROWS, D_MODEL, ROW, FAR = 400, 64, 40, 20


def positions(base):
    """As `sinusoidal_positions`, with another number in place of 10000: (ROWS, D_MODEL)."""
    exponents = torch.arange(0, D_MODEL, 2, dtype=torch.float64) / D_MODEL
    angles = torch.arange(ROWS, dtype=torch.float64)[:, None] / base**exponents
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def alike():
    """By base: the rows more than 20 away that are most like row 40, with their dot products."""
    found = {}
    for base in (10000, 10, 1):
        rows = positions(base)
        products = rows @ rows[ROW]
        away = (torch.arange(ROWS) - ROW).abs() > FAR
        near_best = away & (products > products[away].max() - 0.005)
        found[f"base {base}"] = {
            row: round(products[row].item(), 5) for row in near_best.nonzero().flatten().tolist()
        }
    return found
