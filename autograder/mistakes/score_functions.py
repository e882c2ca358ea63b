"""Wrong and right answers to the exercises of lesson 04."""

import math

import torch
from torch.nn import functional

from attention.score_functions import KINDS
from autograder.checking.toolbox.registry import alternative, careless, mistake


def _known(kind):
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is none of {', '.join(KINDS)}")
    return kind


def _score(kind, q, k, weights, **replaced):
    """The scores of one kind, with the formulas in ``replaced`` instead of the right ones."""
    formulas = {
        "dot": lambda: torch.einsum("bqd,bkd->bqk", q, k),
        "scaled_dot": lambda: torch.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[2]),
        "bilinear": lambda: torch.einsum("bqd,de,bke->bqk", q, weights["W"], k),
        "reduced_rank": lambda: torch.einsum(
            "bqd,rd,re,bke->bqk", q, weights["V"], weights["U"], k
        ),
        "additive": lambda: (
            torch.tanh((q @ weights["W_q"].T)[:, :, None] + (k @ weights["W_k"].T)[:, None])
            @ weights["v"]
        ),
    }
    return (formulas | replaced)[_known(kind)]()


@mistake("score", hint="The keys run down and the queries across.")
def keys_run_down(kind, q, k, weights):
    return _score(kind, q, k, weights).mT


@mistake(
    "score",
    hint="The scaled dot product is divided by d_k. Its root is enough: lesson 05 shows why.",
    earns=("bilinear and reduced_rank", "additive and other kinds, and a single query"),
)
def divides_by_d(kind, q, k, weights):
    return _score(kind, q, k, weights, scaled_dot=lambda: q @ k.mT / k.shape[2])


@mistake(
    "score",
    hint="The scaled dot product is divided by the root of the number of keys. It should be the "
    "length of a key vector.",
)
def scales_by_the_number_of_keys(kind, q, k, weights):
    return _score(kind, q, k, weights, scaled_dot=lambda: q @ k.mT / k.shape[1] ** 0.5)


@mistake(
    "score",
    hint="The scaled dot product is not scaled.",
    earns=("bilinear and reduced_rank", "additive and other kinds, and a single query"),
)
def forgets_the_scale(kind, q, k, weights):
    return _score(kind, q, k, weights, scaled_dot=lambda: q @ k.mT)


@mistake("score", hint="The scaled dot product is multiplied by √d_k. It should be divided.")
def multiplies_by_the_root(kind, q, k, weights):
    return _score(kind, q, k, weights, scaled_dot=lambda: q @ k.mT * k.shape[2] ** 0.5)


@mistake(
    "score",
    hint="W is transposed: kᵀ W q is not qᵀ W k. The rows of W belong to the query.",
    earns=("dot and scaled_dot", "additive and other kinds, and a single query"),
)
def transposes_w(kind, q, k, weights):
    return _score(kind, q, k, weights, bilinear=lambda: q @ weights["W"].T @ k.mT)


@mistake(
    "score",
    hint="In the reduced rank score U and V have changed places: V is for queries, U for keys.",
    earns=("dot and scaled_dot", "additive and other kinds, and a single query"),
)
def swaps_u_and_v(kind, q, k, weights):
    return _score(
        kind,
        q,
        k,
        weights,
        reduced_rank=lambda: (q @ weights["U"].T) @ (k @ weights["V"].T).mT,
    )


@mistake("score", hint="In the additive score tanh comes after the product with v.")
def takes_tanh_after_the_product(kind, q, k, weights):
    def additive():
        hidden = (q @ weights["W_q"].T)[:, :, None] + (k @ weights["W_k"].T)[:, None]
        return torch.tanh(hidden @ weights["v"])

    return _score(kind, q, k, weights, additive=additive)


@mistake(
    "score",
    hint="In the additive score W_q and W_k have changed places: W_q belongs to the queries.",
)
def swaps_the_projections(kind, q, k, weights):
    def additive():
        hidden = (q @ weights["W_k"].T)[:, :, None] + (k @ weights["W_q"].T)[:, None]
        return torch.tanh(hidden) @ weights["v"]

    return _score(kind, q, k, weights, additive=additive)


@mistake(
    "score",
    hint="In the additive score the tanh is missing.",
    earns=("dot and scaled_dot", "bilinear and reduced_rank"),
)
def forgets_the_tanh(kind, q, k, weights):
    def additive():
        return ((q @ weights["W_q"].T)[:, :, None] + (k @ weights["W_k"].T)[:, None]) @ weights["v"]

    return _score(kind, q, k, weights, additive=additive)


@mistake("score", hint="The softmax has been taken: these are weights. Scores come before it.")
def gives_weights(kind, q, k, weights):
    return _score(kind, q, k, weights).softmax(-1)


@mistake(
    "score",
    hint="An axis of length 1 is squeezed away. All three should stay.",
    earns=("dot and scaled_dot", "bilinear and reduced_rank"),
)
def squeezes_axes_away(kind, q, k, weights):
    return _score(kind, q, k, weights).squeeze()


@mistake(
    "score",
    hint="An unknown kind gets scores all the same. Raise a ValueError that lists the kinds.",
    earns=("dot and scaled_dot", "bilinear and reduced_rank"),
)
def accepts_any_kind(kind, q, k, weights):
    return _score(kind if kind in KINDS else "dot", q, k, weights)


@mistake(
    "score",
    hint="`.T` turns all three axes of k around, the batch as well. Only the last two change "
    "places.",
)
def turns_all_axes(kind, q, k, weights):
    return _score(kind, q, k, weights, dot=lambda: q @ k.T, scaled_dot=lambda: q @ k.T)


ELEMENT_BY_ELEMENT = (
    "q and k are multiplied element by element, so query 0 meets key 0 only. Every query meets "
    "every key in a matrix product."
)


@mistake("score", hint=ELEMENT_BY_ELEMENT)
def multiplies_elements_in_both(kind, q, k, weights):
    return _score(kind, q, k, weights, dot=lambda: (q * k).sum(-1), scaled_dot=lambda: q * k)


@mistake("score", hint=ELEMENT_BY_ELEMENT)
def multiplies_elements_in_one(kind, q, k, weights):
    return _score(kind, q, k, weights, dot=lambda: (q * k).sum(-1))


@alternative("score")
def all_with_einsum(kind, q, k, weights):
    return _score(kind, q, k, weights)


@alternative("score")
def by_way_of_one_matrix(kind, q, k, weights):
    if _known(kind) == "additive":
        columns = [
            torch.tanh(q @ weights["W_q"].T + key[:, None] @ weights["W_k"].T) @ weights["v"]
            for key in k.unbind(1)
        ]
        return torch.stack(columns, 2)
    matrix = {
        "dot": lambda: torch.eye(q.shape[2]).to(q),
        "scaled_dot": lambda: torch.eye(q.shape[2]).to(q) * q.shape[2] ** -0.5,
        "bilinear": lambda: weights["W"],
        "reduced_rank": lambda: weights["V"].T @ weights["U"],
    }[kind]()
    return torch.bmm(torch.matmul(q, matrix), k.transpose(1, 2))


@careless("score")
def fills_a_new_tensor(kind, q, k, weights):
    scores = torch.zeros(q.shape[0], q.shape[1], k.shape[1])
    for b in range(len(q)):
        scores[b] = _score(kind, q[b : b + 1], k[b : b + 1], weights)[0]
    return scores


@careless("score")
def through_numpy(kind, q, k, weights):
    arrays = {name: weight.numpy() for name, weight in weights.items()}
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return _score(kind, torch.from_numpy(q.numpy()), torch.from_numpy(k.numpy()), tensors)


@mistake("as_bilinear", hint="A matrix of ones mixes all features. Which matrix changes nothing?")
def takes_ones(kind, d, weights):
    if kind == "reduced_rank":
        return weights["V"].T @ weights["U"]
    return torch.ones(d, d) / (d**0.5 if kind == "scaled_dot" else 1)


@mistake(
    "as_bilinear",
    hint="V and U have changed places: the rows of W belong to the query, which V projects.",
)
def swaps_v_and_u(kind, d, weights):
    if kind not in ("dot", "scaled_dot"):  # the axis r disappears, d and d remain
        return torch.einsum("ri,rj->ij", weights["U"], weights["V"])
    size = 1.0 if kind == "dot" else d**-0.5
    return torch.diag(torch.full((d,), size))


@mistake(
    "as_bilinear",
    hint="The matrix of the scaled dot product is divided by d. The score is divided by its root.",
)
def divides_the_matrix_by_d(kind, d, weights):
    if kind == "reduced_rank":
        return weights["V"].T @ weights["U"]
    return torch.eye(d) / (d if kind == "scaled_dot" else 1)


@mistake("as_bilinear", hint="The scale is missing: the scaled score is smaller by √d.")
def forgets_the_root(kind, d, weights):
    return weights["V"].T @ weights["U"] if kind == "reduced_rank" else torch.eye(d)


@mistake("as_bilinear", hint="The scaled score is divided by √d, so W is smaller, not larger.")
def multiplies_the_matrix(kind, d, weights):
    if kind == "reduced_rank":
        return weights["V"].T @ weights["U"]
    return torch.eye(d) * (d**0.5 if kind == "scaled_dot" else 1)


@mistake(
    "as_bilinear",
    hint="The product runs over the wrong axes: the axis r, which V and U share, should disappear. "
    "Write (V q)·(U k) as qᵀ … k first.",
)
def forgets_to_transpose(kind, d, weights):
    if kind == "reduced_rank":
        return weights["V"] @ weights["U"]
    return torch.eye(d) / (d**0.5 if kind == "scaled_dot" else 1)


@mistake(
    "as_bilinear",
    hint="A number is returned for dot and scaled_dot. W is a matrix: which one, put between q and "
    "k, changes nothing?",
)
def returns_numbers_for_matrices(kind, d, weights):
    if kind == "reduced_rank":
        return _bilinear(weights)
    return 1 if kind == "dot" else d**-0.5


@alternative("as_bilinear")
def entry_by_entry(kind, d, weights):
    if kind == "reduced_rank":
        return torch.einsum("rq,rk->qk", weights["V"], weights["U"])
    return torch.diag(torch.full((d,), 1.0 if kind == "dot" else 1 / math.sqrt(d)))


@alternative("as_bilinear")
def sum_of_outer_products(kind, d, weights):
    if kind == "reduced_rank":
        return sum(map(torch.outer, weights["V"], weights["U"]))
    W = torch.zeros(d, d, dtype=torch.float64)
    return W.fill_diagonal_(1.0 if kind == "dot" else d**-0.5)


@careless("as_bilinear")
def fills_a_new_matrix(kind, d, weights):
    if kind != "reduced_rank":
        return torch.eye(d) / (d**0.5 if kind == "scaled_dot" else 1)
    W = torch.zeros(weights["V"].shape[1], weights["U"].shape[1])
    for v, u in zip(weights["V"], weights["U"], strict=True):
        W += torch.outer(v, u)
    return W


@careless("as_bilinear")
def in_single_precision(kind, d, weights):
    if kind == "reduced_rank":
        return weights["V"].float().T @ weights["U"].float()
    return torch.eye(d) * (d**-0.5 if kind == "scaled_dot" else 1)


def _costs(kind, T_q, T_k, d, r, **replaced):
    """Parameters and multiplications, with the counts in ``replaced`` instead of the right ones."""
    pairs, both = T_q * T_k, (T_q + T_k) * r * d
    return {
        "dot": (0, pairs * d),
        "scaled_dot": (0, pairs * (d + 1)),
        "bilinear": (d * d, T_q * d * d + pairs * d),
        "reduced_rank": (2 * r * d, both + pairs * r),
        "additive": (2 * r * d + r, both + pairs * r),
        **replaced,
    }[kind]


@mistake(
    "score_costs",
    hint="Every pair is projected again. Each query and each key need be projected only once.",
)
def projects_every_pair(kind, T_q, T_k, d, r):
    pairs = T_q * T_k
    return _costs(
        kind,
        T_q,
        T_k,
        d,
        r,
        bilinear=(d * d, pairs * (d * d + d)),
        reduced_rank=(2 * r * d, pairs * (2 * r * d + r)),
        additive=(2 * r * d + r, pairs * (2 * r * d + r)),
    )


@mistake("score_costs", hint="The additive score has parameters besides W_q and W_k: v counts too.")
def forgets_v(kind, T_q, T_k, d, r):
    count = (T_q + T_k) * r * d + T_q * T_k * r
    return _costs(kind, T_q, T_k, d, r, additive=(2 * r * d, count))


@mistake(
    "score_costs",
    hint="The bilinear score projects queries and keys. One matrix between them is enough.",
)
def projects_both_sides(kind, T_q, T_k, d, r):
    count = (T_q + T_k) * d * d + T_q * T_k * d
    return _costs(kind, T_q, T_k, d, r, bilinear=(d * d, count))


@mistake(
    "score_costs",
    hint="The division by √d is not counted: there is one for each pair.",
)
def forgets_the_division(kind, T_q, T_k, d, r):
    return _costs(kind, T_q, T_k, d, r, scaled_dot=(0, T_q * T_k * d))


@mistake(
    "score_costs",
    hint="Only the projections are counted. For each pair there is a product of r numbers as well.",
)
def counts_projections_only(kind, T_q, T_k, d, r):
    both = (T_q + T_k) * r * d
    return _costs(
        kind, T_q, T_k, d, r, reduced_rank=(2 * r * d, both), additive=(2 * r * d + r, both)
    )


@mistake(
    "score_costs",
    hint="Only the queries are projected. Reduced rank and additive scores project the keys too.",
)
def projects_queries_only(kind, T_q, T_k, d, r):
    count = T_q * r * d + T_q * T_k * r
    return _costs(
        kind, T_q, T_k, d, r, reduced_rank=(2 * r * d, count), additive=(2 * r * d + r, count)
    )


@mistake(
    "score_costs",
    hint="After the projection, queries and keys have r numbers each. Pairs are made of these.",
)
def compares_d_numbers(kind, T_q, T_k, d, r):
    count = (T_q + T_k) * r * d + T_q * T_k * d
    return _costs(
        kind, T_q, T_k, d, r, reduced_rank=(2 * r * d, count), additive=(2 * r * d + r, count)
    )


@mistake(
    "score_costs",
    hint="In the bilinear score the keys are projected here. Project the queries.",
)
def projects_the_keys(kind, T_q, T_k, d, r):
    return _costs(kind, T_q, T_k, d, r, bilinear=(d * d, T_k * d * d + T_q * T_k * d))


@mistake("score_costs", hint="The two numbers have changed places: first the parameters.")
def swaps_the_two_numbers(kind, T_q, T_k, d, r):
    return _costs(kind, T_q, T_k, d, r)[::-1]


@mistake(
    "score_costs",
    hint="The bilinear score projects the query anew for every pair. Project each query once, and "
    "use it for all keys.",
)
def projects_for_every_pair(kind, T_q, T_k, d, r):
    return _costs(kind, T_q, T_k, d, r, bilinear=(d * d, T_q * T_k * (d * d + d)))


@alternative("score_costs")
def from_a_table(kind, T_q, T_k, d, r):
    return _costs(kind, T_q, T_k, d, r)


@alternative("score_costs")
def with_tensors_of_those_shapes(kind, T_q, T_k, d, r):
    shapes = {
        "bilinear": [(d, d)],
        "reduced_rank": [(r, d), (r, d)],
        "additive": [(r, d), (r, d), (r,)],
    }.get(kind, [])
    compared = d if kind in ("dot", "scaled_dot", "bilinear") else r
    count = T_q * T_k * (compared + (kind == "scaled_dot"))
    for vectors, shape in zip((T_q, T_k), shapes, strict=False):
        count += vectors * math.prod(shape)
    return sum(map(math.prod, shapes)), count


def _squares(q, k):
    return (q * q).sum(2)[:, :, None], (k * k).sum(2)[:, None]


@mistake(
    "gaussian_scores",
    hint="The sign: these are squared distances, so the farthest key would win.",
)
def forgets_the_minus(q, k, bandwidth):
    a, b = _squares(q, k)
    return (a + b - 2 * q @ k.mT) / (2 * bandwidth**2)


@mistake(
    "gaussian_scores",
    hint="The middle term of (a - b)² is 2ab. Here the dot product comes only once.",
)
def forgets_the_two(q, k, bandwidth):
    a, b = _squares(q, k)
    return (q @ k.mT - a - b) / (2 * bandwidth**2)


@mistake(
    "gaussian_scores",
    hint="The term ‖k‖² is missing. The softmax over keys cancels ‖q‖², but not this one, unless "
    "all keys have the same length.",
)
def leaves_out_the_keys(q, k, bandwidth):
    return (2 * q @ k.mT - _squares(q, k)[0]) / (2 * bandwidth**2)


@mistake(
    "gaussian_scores",
    hint="The term ‖q‖² is missing. The softmax would not mind, but these are not yet the scores.",
)
def leaves_out_the_queries(q, k, bandwidth):
    return (2 * q @ k.mT - _squares(q, k)[1]) / (2 * bandwidth**2)


@mistake("gaussian_scores", hint="The bandwidth is not squared.")
def does_not_square_the_bandwidth(q, k, bandwidth):
    a, b = _squares(q, k)
    return (2 * q @ k.mT - a - b) / (2 * bandwidth)


@mistake(
    "gaussian_scores",
    hint="The lengths of the vectors are not squared: ‖q‖² is the sum of squares, without a root.",
)
def takes_norms_without_square(q, k, bandwidth):
    a, b = _squares(q, k)
    return (2 * q @ k.mT - a.sqrt() - b.sqrt()) / (2 * bandwidth**2)


@mistake(
    "gaussian_scores",
    hint="This is the kernel itself. Its score is the exponent; exp comes with the softmax.",
)
def takes_the_exponential(q, k, bandwidth):
    a, b = _squares(q, k)
    return torch.exp((q @ k.mT - a / 2 - b / 2) / bandwidth**2)


@mistake(
    "gaussian_scores",
    hint="Half as large as it should be: the 2 of 2h² is already in q·k - ‖q‖²/2 - ‖k‖²/2.",
)
def halves_twice(q, k, bandwidth):
    a, b = _squares(q, k)
    return (q @ k.mT - a / 2 - b / 2) / (2 * bandwidth**2)


@mistake(
    "gaussian_scores",
    hint="The squared lengths are added. Both are subtracted: a far key has a low score.",
)
def adds_the_lengths(q, k, bandwidth):
    a, b = _squares(q, k)
    return (q @ k.mT + a / 2 + b / 2) / bandwidth**2


@mistake("gaussian_scores", hint="The distances are not squared.")
def does_not_square_the_distance(q, k, bandwidth):
    return -(q[:, :, None] - k[:, None]).norm(dim=3) / (2 * bandwidth**2)


@mistake(
    "gaussian_scores",
    hint="The squared lengths, (B, T_q) and (B, T_k), need an axis more: ‖q‖² is the same for all "
    "keys of a query, ‖k‖² for all queries.",
)
def forgets_the_axes_of_the_lengths(q, k, bandwidth):
    return (q @ k.mT - q.square().sum(2) / 2 - k.square().sum(2) / 2) / bandwidth**2


@alternative("gaussian_scores")
def with_batched_addition(q, k, bandwidth):
    a, b = _squares(q, k)
    return torch.baddbmm(a + b, q, k.transpose(1, 2), alpha=-2) / (-2 * bandwidth * bandwidth)


@alternative("gaussian_scores")
def from_one_long_dot_product(q, k, bandwidth):
    a, b = _squares(q, k)
    ones_q, ones_k = torch.ones_like(a), torch.ones_like(b.mT)
    left = torch.cat([q, a, ones_q], 2) / bandwidth
    right = torch.cat([k, -ones_k / 2, -b.mT / 2], 2) / bandwidth
    return torch.einsum("bqd,bkd->bqk", left, right)


@careless("gaussian_scores")
def pair_by_pair(q, k, bandwidth):
    scores = torch.zeros(q.shape[0], q.shape[1], k.shape[1])
    for b, i, j in torch.cartesian_prod(*map(torch.arange, scores.shape)).tolist():
        gap = q[b, i] @ q[b, i] - 2 * q[b, i] @ k[b, j] + k[b, j] @ k[b, j]
        scores[b, i, j] = -gap / (2 * bandwidth**2)
    return scores


@careless("gaussian_scores")
def squares_in_place(q, k, bandwidth):
    products = q @ k.mT
    a, b = q.pow_(2).sum(2)[:, :, None], k.pow_(2).sum(2)[:, None]
    return (2 * products - a - b) / (2 * bandwidth**2)


def _gaps(centres, T_k):
    return torch.arange(T_k, device=centres.device) - centres[:, None]


@mistake(
    "local_window",
    hint="The window is one key too narrow: a distance of exactly D is still inside.",
)
def is_off_by_one(centres, T_k, D):
    return _gaps(centres, T_k).abs() < D


@mistake(
    "local_window",
    hint="The window only looks back. It reaches D positions to either side.",
)
def only_looks_back(centres, T_k, D):
    gaps = _gaps(centres, T_k)
    return (gaps <= 0) & (gaps >= -D)


@mistake(
    "local_window",
    hint="The mask is the wrong way round: True means that a key may be attended to.",
)
def is_inverted(centres, T_k, D):
    return _gaps(centres, T_k).abs() > D


@mistake(
    "local_window",
    hint="The window has D keys in all. It reaches D to either side, 2D + 1 keys.",
)
def is_half_as_wide(centres, T_k, D):
    return _gaps(centres, T_k).abs() <= D / 2


@mistake(
    "local_window",
    hint="Numbers 1 and 0 instead of True and False: masks are boolean in this course.",
)
def returns_numbers(centres, T_k, D):
    return (_gaps(centres, T_k).abs() <= D).to(centres.dtype)


@mistake("local_window", hint="The keys run down and the queries across.")
def window_transposed(centres, T_k, D):
    return (_gaps(centres, T_k).abs() <= D).T


@mistake(
    "local_window",
    hint="Distances to the left count as negative, so everything to the left is inside.",
)
def has_no_left_border(centres, T_k, D):
    return _gaps(centres, T_k) <= D


@mistake("local_window", hint="The window only looks ahead. It reaches D positions to either side.")
def only_looks_ahead(centres, T_k, D):
    gaps = _gaps(centres, T_k)
    return (gaps >= 0) & (gaps <= D)


@mistake(
    "local_window",
    hint="The centres are rounded. They may lie between two keys: measure from where they are.",
)
def rounds_to_a_key(centres, T_k, D):
    return _gaps(centres.round(), T_k).abs() <= D


@mistake(
    "local_window",
    hint="The window is pushed back inside at the borders. It is simply cut there.",
)
def is_pushed_inside(centres, T_k, D):
    return _gaps(centres.clamp(D, T_k - 1 - D), T_k).abs() <= D


@mistake("local_window", hint="The keys are counted from 1. They stand at positions 0 to T_k - 1.")
def counts_from_one(centres, T_k, D):
    return _gaps(centres, T_k).add(1).abs() <= D


@alternative("local_window")
def with_two_borders(centres, T_k, D):
    positions = torch.arange(T_k, device=centres.device).expand(len(centres), T_k)
    low, high = (centres - D).unsqueeze(1), (centres + D).unsqueeze(1)
    return (positions >= low) & (positions <= high)


@alternative("local_window")
def row_by_row(centres, T_k, D):
    rows = [[centre - D <= j <= centre + D for j in range(T_k)] for centre in centres.tolist()]
    return torch.tensor(rows, device=centres.device)


@careless("local_window")
def positions_on_the_cpu(centres, T_k, D):
    return (torch.arange(T_k) - centres[:, None]).abs() <= D


@careless("local_window")
def window_after_window(centres, T_k, D):
    mask = torch.zeros(len(centres), T_k, dtype=torch.bool)
    for i, centre in enumerate(centres.tolist()):
        for j in range(T_k):
            mask[i, j] = abs(j - centre) <= D
    return mask


def _local(scores, centres, D, sigma=None):
    gaps = _gaps(centres, scores.shape[1])
    aligned = scores.masked_fill(gaps.abs() > D, -torch.inf).softmax(1)
    return aligned, torch.exp(-(gaps**2) / (2 * (sigma or D / 2) ** 2)), gaps


@mistake("predictive_local_weights", hint="σ is D here. It should be half of that.")
def takes_sigma_as_d(scores, centres, D):
    aligned, gauss, _ = _local(scores, centres, D, sigma=D)
    return aligned * gauss


@mistake(
    "predictive_local_weights",
    hint="σ is not squared in the exponent, -(position - p)² / (2σ²).",
)
def does_not_square_sigma(scores, centres, D):
    aligned, _, gaps = _local(scores, centres, D)
    return aligned * torch.exp(-(gaps**2) / D)


@mistake(
    "predictive_local_weights",
    hint="The Gaussian is there, but the softmax runs over all keys, and keys far away keep some "
    "weight. Cut the window first.",
)
def forgets_the_window(scores, centres, D):
    return scores.softmax(1) * _local(scores, centres, D)[1]


@mistake(
    "predictive_local_weights",
    hint="The softmax runs over all keys, and the window is cut out afterwards. Scores outside "
    "the window should not count.",
)
def cuts_after_the_softmax(scores, centres, D):
    _, gauss, gaps = _local(scores, centres, D)
    return scores.softmax(1) * gauss * (gaps.abs() <= D)


@mistake(
    "predictive_local_weights",
    hint="The rows sum to 1: the Gaussian went into the softmax, or was divided away again. In "
    "local-p attention the rows sum to less than 1.",
)
def normalises_again(scores, centres, D):
    aligned, gauss, _ = _local(scores, centres, D)
    return aligned * gauss / (aligned * gauss).sum(1, keepdim=True)


@mistake("predictive_local_weights", hint="This is the window alone. The Gaussian is missing.")
def forgets_the_gaussian(scores, centres, D):
    return _local(scores, centres, D)[0]


@mistake(
    "predictive_local_weights",
    hint="The centres are rounded. They may lie between two keys, and only unrounded ones have a "
    "gradient.",
)
def rounds_the_centres(scores, centres, D):
    aligned, gauss, _ = _local(scores, centres.round(), D)
    return aligned * gauss


@mistake(
    "predictive_local_weights",
    hint="Outside the window the score is 0, which is a score like any other: exp(0) is 1.",
)
def fills_with_zero(scores, centres, D):
    gaps = _gaps(centres, scores.shape[1])
    return scores.masked_fill(gaps.abs() > D, 0.0).softmax(1) * _local(scores, centres, D)[1]


@mistake(
    "predictive_local_weights",
    hint="Scores outside the window become a low number, and scores inside it may be lower still. "
    "Only −∞ is below all of them.",
)
def fills_with_minus_thirty(scores, centres, D):
    outside = _gaps(centres, scores.shape[1]).abs() > D
    return scores.masked_fill(outside, -30.0).softmax(1) * _local(scores, centres, D)[1]


@mistake(
    "predictive_local_weights",
    hint="The 2 in the exponent, -(position - p)² / (2σ²), is missing.",
)
def forgets_the_two_sigma(scores, centres, D):
    aligned, _, gaps = _local(scores, centres, D)
    return aligned * torch.exp(-(gaps**2) / (D / 2) ** 2)


@mistake(
    "predictive_local_weights",
    hint="This is the density of a normal distribution. The factor asked for is 1 at the centre.",
)
def uses_a_density(scores, centres, D):
    aligned, gauss, _ = _local(scores, centres, D)
    return aligned * gauss / (math.sqrt(2 * math.pi) * D / 2)


@mistake(
    "predictive_local_weights",
    hint="The softmax runs along the queries. Each query shares its weight among the keys.",
)
def shares_among_the_queries(scores, centres, D):
    outside = _gaps(centres, scores.shape[1]).abs() > D
    return scores.masked_fill(outside, -torch.inf).softmax(0) * _local(scores, centres, D)[1]


@alternative("predictive_local_weights")
def query_by_query(scores, centres, D):
    rows = []
    for row, centre in zip(scores, centres, strict=True):
        gaps = torch.arange(len(row), device=row.device) - centre
        inside = gaps.abs() <= D
        powers = torch.where(inside, row - row[inside].max(), -torch.inf).exp()
        rows.append(powers / powers.sum() * torch.exp(-2 * (gaps / D) ** 2))
    return torch.stack(rows)


@alternative("predictive_local_weights")
def with_a_normal_density(scores, centres, D):
    gaps = _gaps(centres, scores.shape[1])
    seen = torch.where(gaps.abs() <= D, scores, -torch.inf)
    powers = (seen - seen.amax(1, keepdim=True)).exp()
    density = torch.distributions.Normal(0.0, D / 2).log_prob(gaps)
    peak = -math.log(D / 2 * math.sqrt(2 * math.pi))
    return powers / powers.sum(1, keepdim=True) * (density - peak).exp()


@careless("predictive_local_weights")
def distances_on_the_cpu(scores, centres, D):
    gaps = torch.arange(scores.shape[1]) - centres[:, None]
    aligned = scores.masked_fill(gaps.abs() > D, -torch.inf).softmax(1)
    return aligned * torch.exp(-2 * (gaps / D) ** 2)


@careless("predictive_local_weights")
def exponentials_without_a_shift(scores, centres, D):
    gaps = _gaps(centres, scores.shape[1])
    powers = scores.exp() * (gaps.abs() <= D)
    return powers / powers.sum(1, keepdim=True) * torch.exp(-2 * (gaps / D) ** 2)


@mistake(
    "hard_attention",
    hint="This is soft attention, the average of all values. Choose one of them.",
)
def averages(weights, values, uniform):
    return weights @ values


@mistake(
    "hard_attention",
    hint="Always the key with the largest weight. A key with the weight 1/4 should be chosen in a "
    "quarter of all cases.",
)
def always_takes_the_largest(weights, values, uniform):
    return values[weights.argmax(1)]


@mistake(
    "hard_attention",
    hint="One key too far: the first key must be chosen while the random number is below its "
    "weight.",
)
def goes_one_key_too_far(weights, values, uniform):
    chosen = (weights.cumsum(1) <= uniform[:, None]).sum(1) + 1
    return values[chosen.clamp(max=len(values) - 1)]


@mistake(
    "hard_attention",
    hint="The random number is compared with single weights, not with the sum of the weights so "
    "far.",
)
def forgets_to_add_up(weights, values, uniform):
    return values[(weights > uniform[:, None]).to(torch.int64).argmax(1)]


@mistake(
    "hard_attention",
    hint="All keys are equally likely: the weights have no effect.",
)
def ignores_the_weights(weights, values, uniform):
    return values[(uniform * len(values)).long()]


@mistake(
    "hard_attention",
    hint="The sums run along the queries. The weights of one query are a row.",
)
def adds_up_the_columns(weights, values, uniform):
    chosen = (weights.cumsum(0) <= uniform[:, None]).sum(1)
    return values[chosen.clamp(max=len(values) - 1)]


@mistake(
    "hard_attention",
    hint="A key without any weight was chosen: with the random number 0, a sum of 0 is not larger.",
)
def chooses_a_key_without_weight(weights, values, uniform):
    chosen = (weights.cumsum(1) < uniform[:, None]).sum(1)
    return values[chosen.clamp(max=len(values) - 1)]


@mistake(
    "hard_attention",
    hint="Rounding can leave the last sum just below 1, and the random number above it: the index "
    "then runs past the last key.",
)
def runs_past_the_last_key(weights, values, uniform):
    return values[(weights.cumsum(1) <= uniform[:, None]).sum(1)]


@mistake(
    "hard_attention",
    hint="The choice is drawn anew. The random numbers are given: `uniform` is the only source of "
    "chance.",
)
def draws_by_itself(weights, values, uniform):
    return values[torch.multinomial(weights, 1).squeeze(1)]


@mistake(
    "hard_attention",
    hint="These are the positions of the chosen keys. The values that stand there are asked for.",
)
def returns_the_positions(weights, values, uniform):
    return (weights.cumsum(1) <= uniform[:, None]).sum(1)


@mistake(
    "hard_attention",
    hint="The random numbers, (T_q,), are lined up with the keys of (T_q, T_k). Each belongs to a "
    "query: give it an axis of its own, (T_q, 1).",
)
def lines_chance_up_with_the_keys(weights, values, uniform):
    return values[(weights.cumsum(1) <= uniform).sum(1).clamp(max=len(values) - 1)]


@alternative("hard_attention")
def with_searchsorted(weights, values, uniform):
    sums = weights.cumsum(1).contiguous()
    chosen = torch.searchsorted(sums, uniform[:, None].contiguous(), right=True)
    return values[chosen.squeeze(1).clamp(max=len(values) - 1)]


@alternative("hard_attention")
def adds_up_in_a_loop(weights, values, uniform):
    chosen = []
    for row, left in zip(weights.tolist(), uniform.tolist(), strict=True):
        index, total = 0, row[0]
        while total <= left and index < len(row) - 1:
            index += 1
            total += row[index]
        chosen.append(index)
    return functional.one_hot(torch.tensor(chosen), len(values)).to(values) @ values


@careless("hard_attention")
def fills_new_rows(weights, values, uniform):
    chosen = torch.zeros(len(weights), values.shape[1])
    for i, row in enumerate(weights):
        j = int((row.cumsum(0) <= uniform[i]).sum())
        chosen[i] = values[min(j, len(values) - 1)]
    return chosen


@careless("hard_attention")
def numbers_one_hot(weights, values, uniform):
    index = (weights.cumsum(1) <= uniform[:, None]).sum(1).clamp(max=len(values) - 1)
    one_hot = torch.zeros(len(weights), len(values), dtype=values.dtype)
    one_hot[torch.arange(len(weights)), index] = 1
    return one_hot @ values


def _one_hot(scores, chosen):
    return functional.one_hot(chosen, len(scores)).to(scores)


@mistake(
    "reinforce_gradient",
    hint="The softmax is not subtracted: raising one score lowers all other weights.",
)
def forgets_the_softmax(scores, chosen, rewards, baseline):
    return ((rewards - baseline)[:, None] * _one_hot(scores, chosen)).mean(0)


@mistake(
    "reinforce_gradient",
    hint="The gradient is taken through the sample. A choice does not change when the scores move "
    "a little, so that gradient is 0 everywhere.",
)
def differentiates_through_the_sample(scores, chosen, rewards, baseline):
    leaf = scores.clone().requires_grad_()
    reward = (_one_hot(scores, chosen) * rewards[:, None]).mean(0) + 0 * leaf
    return torch.autograd.grad(reward.sum(), leaf)[0]


@mistake(
    "reinforce_gradient",
    hint="The rewards have no effect: all choices are made more likely, good or bad.",
)
def ignores_the_rewards(scores, chosen, rewards, baseline):
    return (_one_hot(scores, chosen) - scores.softmax(0)).mean(0)


@mistake(
    "reinforce_gradient",
    hint="The baseline has no effect. Subtract it from every reward.",
    earns=("one trial", "many trials"),
)
def ignores_the_baseline(scores, chosen, rewards, baseline):
    return (rewards[:, None] * (_one_hot(scores, chosen) - scores.softmax(0))).mean(0)


@mistake(
    "reinforce_gradient",
    hint="This is the sum over the trials. The mean is asked for.",
    earns=("one trial", "with a baseline"),
)
def adds_up_the_trials(scores, chosen, rewards, baseline):
    return ((rewards - baseline)[:, None] * (_one_hot(scores, chosen) - scores.softmax(0))).sum(0)


@mistake(
    "reinforce_gradient",
    hint="The sign: this gradient makes bad choices more likely. Rewards are to grow.",
)
def goes_downhill(scores, chosen, rewards, baseline):
    return ((rewards - baseline)[:, None] * (scores.softmax(0) - _one_hot(scores, chosen))).mean(0)


@mistake(
    "reinforce_gradient",
    hint="This is the gradient of the weight. REINFORCE takes that of its logarithm, which makes "
    "up for rare choices being sampled rarely.",
)
def forgets_the_logarithm(scores, chosen, rewards, baseline):
    p = scores.softmax(0)
    gradients = (_one_hot(scores, chosen) - p) * p[chosen][:, None]
    return ((rewards - baseline)[:, None] * gradients).mean(0)


@mistake(
    "reinforce_gradient",
    hint="The mean of these very rewards is subtracted. It depends on the trials, so the estimate "
    "is no longer right on average; use the baseline that is given.",
)
def takes_their_own_mean_as_baseline(scores, chosen, rewards, baseline):
    gain = rewards - rewards.mean()
    return (gain[:, None] * (_one_hot(scores, chosen) - scores.softmax(0))).mean(0)


@mistake(
    "reinforce_gradient",
    hint="The baseline is added. Subtract it from every reward.",
    earns=("one trial", "many trials"),
)
def adds_the_baseline(scores, chosen, rewards, baseline):
    gradients = _one_hot(scores, chosen) - scores.softmax(0)
    return ((rewards + baseline)[:, None] * gradients).mean(0)


@mistake(
    "reinforce_gradient",
    hint="Divided by the weight of the choice. Likely keys are sampled more often already, so no "
    "division is needed.",
)
def divides_by_the_weight(scores, chosen, rewards, baseline):
    p = scores.softmax(0)
    gradients = (_one_hot(scores, chosen) - p) / p[chosen][:, None]
    return ((rewards - baseline)[:, None] * gradients).mean(0)


@mistake(
    "reinforce_gradient",
    hint="The rewards, (N,), line up with the keys of (N, T_k), not with the trials. "
    "Give it an axis of its own: (N, 1).",
    earns=("one trial", "with a baseline"),
)
def lines_the_rewards_up_with_the_keys(scores, chosen, rewards, baseline):
    return ((rewards - baseline) * (_one_hot(scores, chosen) - scores.softmax(0))).mean(0)


@mistake(
    "reinforce_gradient",
    hint="A baseline of 0 is taken for none at all, and the mean of these rewards for it. 0 is a "
    "number to subtract like any other.",
    earns=("with a baseline",),
)
def replaces_a_baseline_of_zero(scores, chosen, rewards, baseline):
    gain = rewards - (baseline or rewards.mean())
    return (gain[:, None] * (_one_hot(scores, chosen) - scores.softmax(0))).mean(0)


@alternative("reinforce_gradient")
def with_autograd(scores, chosen, rewards, baseline):
    leaf = scores.detach().clone().requires_grad_()
    gain = ((rewards - baseline) * leaf.log_softmax(0)[chosen]).mean()
    return torch.autograd.grad(gain, leaf)[0]


@alternative("reinforce_gradient")
def key_by_key(scores, chosen, rewards, baseline):
    p, gain = scores.softmax(0), rewards - baseline
    return torch.stack([(gain * ((chosen == j).to(p) - p[j])).mean() for j in range(len(p))])


@careless("reinforce_gradient")
def identity_on_the_cpu(scores, chosen, rewards, baseline):
    gradients = torch.eye(len(scores))[chosen] - scores.softmax(0)
    return ((rewards - baseline)[:, None] * gradients).mean(0)


@careless("reinforce_gradient")
def subtracts_in_place(scores, chosen, rewards, baseline):
    rewards -= baseline
    return (rewards[:, None] * (_one_hot(scores, chosen) - scores.softmax(0))).mean(0)


_BOOL = "True and False have no gradient"
_THREE_AXES = "of three axes the last is axis 2"
_DISTANCE = "only the distance counts, and its square: they have no sign"
_NUMBERS = "what is asked for is the matrix: nothing is learned through it"
_EYE = "one-hot rows hold 0 and 1 exactly in any dtype, and minus the weights they take theirs"
_TOGETHER = "all arguments live on one device"
_ONE_AXIS = "of one axis the first is the last"


def _bilinear(weights):
    return torch.einsum("rq,rk->qk", weights["V"], weights["U"])


@mistake(
    "break_as_bilinear",
    hint="This kind has no V and no U, so there is nothing to exchange.",
    where=lambda kind, d, weights: kind != "reduced_rank",
)
def without_v_and_u():
    return "scaled_dot", 5, {}


@mistake(
    "break_as_bilinear",
    hint="V and U are the same matrix: exchanging them changes nothing.",
    where=lambda kind, d, weights: torch.equal(weights["V"], weights["U"]),
)
def one_matrix_for_both():
    V = torch.arange(6.0).view(2, 3)
    return "reduced_rank", 3, {"V": V, "U": V.clone()}


@mistake(
    "break_as_bilinear",
    hint="V and U differ, but W is symmetric: it gives the same score when query and key are "
    "exchanged. Which V and U make a W that is not?",
    where=lambda kind, d, weights: torch.allclose(_bilinear(weights), _bilinear(weights).T),
)
def a_symmetric_matrix():
    return "reduced_rank", 2, {"V": torch.tensor([[1.0, 2.0]]), "U": torch.tensor([[2.0, 4.0]])}


@alternative("break_as_bilinear")
def rank_one():
    weights = {"V": torch.tensor([[1.0, 2.0, 3.0]]), "U": torch.tensor([[3.0, 2.0, 1.0]])}
    return "reduced_rank", 3, weights


@alternative("break_as_bilinear")
def counted_up():
    V = torch.arange(8.0, dtype=torch.float64).view(2, 4)
    return "reduced_rank", 4, {"V": V, "U": V.flip(1)}


EQUIVALENT = {
    "score: with `q` once where `k` belongs: return q @ k.mT / q.shape[2] ** 0.5": (
        "queries and keys of this kind have one length"
    ),
    "as_bilinear: whose result is cut off from the gradient: "
    "return (weights['V'].T @ weights['U']).detach()": _NUMBERS,
    "as_bilinear: whose result is cut off from the gradient: return torch.eye(d).detach()": (
        _NUMBERS
    ),
    "as_bilinear: whose result is cut off from the gradient: "
    "return (torch.eye(d) / d ** 0.5).detach()": _NUMBERS,
    "gaussian_scores: with another axis in one place: "
    "q_squared = q.square().sum(dim=-1).unsqueeze(2)": _THREE_AXES,
    "gaussian_scores: with another axis in one place: "
    "k_squared = k.square().sum(dim=-1).unsqueeze(1)": _THREE_AXES,
    "local_window: whose result is cut off from the gradient: "
    "return ((positions - centres.unsqueeze(1)).abs() <= D).detach()": _BOOL,
    "local_window: with the two sides of one `-` exchanged: "
    "return (centres.unsqueeze(1) - positions).abs() <= D": _DISTANCE,
    "predictive_local_weights: with `centres` once where `scores` belongs: "
    "positions = torch.arange(scores.shape[1], device=centres.device)": _TOGETHER,
    "predictive_local_weights: with the two sides of one `-` exchanged: "
    "distances = centres.unsqueeze(1) - positions": _DISTANCE,
    "reinforce_gradient: with another axis in one place: weights = softmax(scores, dim=-1)": (
        _ONE_AXIS
    ),
    "reinforce_gradient: with one whole number off by one: weights = softmax(scores, dim=-1)": (
        _ONE_AXIS
    ),
    "reinforce_gradient: without `dtype` in one call of `eye`: "
    "one_hot = torch.eye(len(scores), device=scores.device)[chosen]": _EYE,
    "reinforce_gradient: with `chosen` once where `scores` belongs: "
    "one_hot = torch.eye(len(scores), dtype=chosen.dtype, device=scores.device)[chosen]": _EYE,
    "reinforce_gradient: with `rewards` once where `scores` belongs: "
    "one_hot = torch.eye(len(scores), dtype=rewards.dtype, device=scores.device)[chosen]": _EYE,
    "reinforce_gradient: with `chosen` once where `scores` belongs: "
    "one_hot = torch.eye(len(scores), dtype=scores.dtype, device=chosen.device)[chosen]": _TOGETHER,
    "reinforce_gradient: with `rewards` once where `scores` belongs: "
    "one_hot = torch.eye(len(scores), dtype=scores.dtype, device=rewards.device)[chosen]": (
        _TOGETHER
    ),
    "reinforce_gradient: whose result is cut off from the gradient: "
    "return ((rewards - baseline).unsqueeze(1) * gradients).mean(dim=0).detach()": (
        "the result is a gradient already, and is not differentiated again"
    ),
}
