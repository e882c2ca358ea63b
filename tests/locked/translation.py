"""Answers to lesson 14 that were written without a look at its checks."""

import torch

from attention.translation import score_of
from tests.locked import right, wrong

# --- paired_bootstrap ------------------------------------------------------------------------


@wrong("paired_bootstrap", cause="the quantiles of the middle 90 %")
def paired_bootstrap_4(ours, theirs, rows):
    differences = []
    for row in rows:
        a = score_of(*[part[row] for part in ours])
        b = score_of(*[part[row] for part in theirs])
        differences.append(a - b)
    differences = torch.tensor(differences)
    low = differences.quantile(0.05).item()
    high = differences.quantile(0.95).item()
    return low, high, (differences > 0).float().mean().item()


@wrong("paired_bootstrap", cause="the two systems' quantiles are subtracted, not their scores")
def paired_bootstrap_5(ours, theirs, rows):
    a = torch.tensor([score_of(*[part[row] for part in ours]) for row in rows])
    b = torch.tensor([score_of(*[part[row] for part in theirs]) for row in rows])
    low = torch.quantile(a, 0.025) - torch.quantile(b, 0.025)
    high = torch.quantile(a, 0.975) - torch.quantile(b, 0.975)
    return low.item(), high.item(), (a > b).float().mean().item()


@wrong("paired_bootstrap", cause="a sentence that is drawn several times counts once")
def paired_bootstrap_6(ours, theirs, rows):
    differences = []
    for row in rows:
        chosen = torch.zeros(len(ours[2]), dtype=torch.bool)
        chosen[row] = True
        a = score_of(*(part[chosen] for part in ours))
        b = score_of(*(part[chosen] for part in theirs))
        differences.append(a - b)
    differences = torch.tensor(differences)
    low, high = differences.quantile(torch.tensor([0.025, 0.975])).tolist()
    return low, high, (differences > 0).float().mean().item()


@right("paired_bootstrap", how="lists, a counter of wins, and one quantile after the other")
def paired_bootstrap_7(ours, theirs, rows):
    differences, wins = [], 0
    for r in range(rows.shape[0]):
        set_a, set_b = [], []
        for k in range(4):
            set_a.append(torch.stack([ours[k][i] for i in rows[r]]))
            set_b.append(torch.stack([theirs[k][i] for i in rows[r]]))
        a, b = score_of(*set_a), score_of(*set_b)
        if a > b:
            wins += 1
        differences.append(a - b)
    differences = torch.tensor(differences)
    low = torch.quantile(differences, 0.025)
    high = torch.quantile(differences, 0.975)
    return float(low), float(high), wins / rows.shape[0]


@right("paired_bootstrap", how="all test sets at once, in float64; tensors of one number")
def paired_bootstrap_8(ours, theirs, rows):
    drawn = [[part[rows] for part in system] for system in (ours, theirs)]
    scores = torch.tensor(
        [[score_of(*sums) for sums in zip(*parts, strict=True)] for parts in drawn],
        dtype=torch.float64,
    )
    gap = scores[0] - scores[1]
    low, high = torch.quantile(gap, torch.tensor([0.025, 0.975], dtype=torch.float64))
    return low, high, (gap > 0).double().mean()
