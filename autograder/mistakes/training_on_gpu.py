"""Wrong and right answers to the exercises of lesson 12."""

import math

from autograder.checking.registry import alternative, mistake


def _flops(
    T_k,
    T_q,
    d_model,
    d_ff,
    n_layers,
    vocab_size,
    passes=3,
    operations=2,
    projections=None,
    products=2,
    maps=2,
    pairs=None,
    scored=None,
    head=True,
):
    """A right count, unless one of the numbers at the end is given otherwise."""
    projections = 6 * T_k + 6 * T_q if projections is None else projections
    pairs = T_k * T_k + T_q * T_q + T_q * T_k if pairs is None else pairs
    layer = projections * d_model**2 + products * pairs * d_model
    layer += maps * (T_k + T_q) * d_model * d_ff
    generator = (T_q if scored is None else scored) * d_model * vocab_size
    return passes * operations * (n_layers * layer + head * generator)


@mistake(
    "training_flops",
    hint="Only the pass forward is counted. The pass backward does twice as much: one product for "
    "the gradient of the inputs, one for that of the weights.",
)
def forgets_the_way_back(**sizes):
    return _flops(**sizes, passes=1)


@mistake(
    "training_flops",
    hint="The pass backward is counted like the pass forward. It has two products for each: one "
    "for the gradient of the inputs, one for that of the weights.",
)
def counts_the_way_back_once(**sizes):
    return _flops(**sizes, passes=2)


@mistake(
    "training_flops",
    hint="Multiplications are counted, but not the additions: an operation each.",
)
def counts_multiplications_only(**sizes):
    return _flops(**sizes, operations=1)


@mistake(
    "training_flops",
    hint="Multiplications of the pass forward are counted. Each comes with an addition, and the "
    "pass backward does twice as much again: six operations in all.",
)
def counts_forward_multiplications(**sizes):
    return _flops(**sizes, operations=1, passes=1)


@mistake(
    "training_flops",
    hint="The decoder's cross-attention is missing: W_q and W_o work on the target, W_k and W_v on "
    "the source, and T_q · T_k pairs are compared.",
)
def forgets_the_cross_attention(T_k, T_q, **sizes):
    counts = {"projections": 4 * T_k + 4 * T_q, "pairs": T_k * T_k + T_q * T_q}
    return _flops(T_k, T_q, **sizes, **counts)


@mistake(
    "training_flops",
    hint="All four projections of the cross-attention are counted on the target. Two of them, W_k "
    "and W_v, work on the source: it is read by the encoder and again in every decoder layer.",
)
def reads_the_source_once(T_k, T_q, **sizes):
    return _flops(T_k, T_q, **sizes, projections=4 * T_k + 8 * T_q)


@mistake(
    "training_flops",
    hint="All four projections of the cross-attention are counted on the source. Two of them, W_q "
    "and W_o, work on the target.",
)
def projects_the_source_only(T_k, T_q, **sizes):
    return _flops(T_k, T_q, **sizes, projections=8 * T_k + 4 * T_q)


@mistake(
    "training_flops",
    hint="The attention itself is missing: scores of all pairs of positions, and weights times "
    "values.",
)
def forgets_the_attention(**sizes):
    return _flops(**sizes, products=0)


@mistake(
    "training_flops",
    hint="Scores or contexts: only one of the attention's two products is counted. Queries times "
    "keys, and weights times values.",
)
def counts_one_product(**sizes):
    return _flops(**sizes, products=1)


@mistake(
    "training_flops",
    hint="In the cross-attention every target position is compared with every source position: "
    "T_q · T_k pairs.",
)
def squares_the_target_in_the_cross_attention(T_k, T_q, **sizes):
    return _flops(T_k, T_q, **sizes, pairs=T_k * T_k + 2 * T_q * T_q)


MASKED = "Half of the decoder's scores is left out. Those that the mask hides are computed, too."


def _masked(T_k, T_q, pairs, sizes):
    """The decoder's own attention has so many pairs."""
    return _flops(T_k, T_q, **sizes, pairs=T_k * T_k + pairs + T_q * T_k)


@mistake("training_flops", hint=MASKED)
def halves_the_masked_scores(T_k, T_q, **sizes):
    return _masked(T_k, T_q, T_q * T_q / 2, sizes)


@mistake("training_flops", hint=MASKED)
def halves_the_masked_scores_as_ints(T_k, T_q, **sizes):
    return _masked(T_k, T_q, T_q * T_q // 2, sizes)


@mistake("training_flops", hint=MASKED)
def counts_scores_before_the_diagonal(T_k, T_q, **sizes):
    return _masked(T_k, T_q, T_q * (T_q - 1) // 2, sizes)


@mistake("training_flops", hint=MASKED)
def counts_scores_up_to_the_diagonal(T_k, T_q, **sizes):
    return _masked(T_k, T_q, T_q * (T_q + 1) // 2, sizes)


LINEAR = "The attention's products grow with T. Scores of T queries and T keys are T² numbers."


@mistake("training_flops", hint=LINEAR)
def counts_scores_per_query(T_k, T_q, **sizes):
    return _flops(T_k, T_q, **sizes, pairs=T_k + 2 * T_q)


@mistake("training_flops", hint=LINEAR)
def counts_scores_per_query_but_across(T_k, T_q, **sizes):
    return _flops(T_k, T_q, **sizes, pairs=T_k + T_q + T_q * T_k)


@mistake(
    "training_flops",
    hint="The output projections are missing: an attention has four, W_o among them.",
)
def forgets_the_output_projection(T_k, T_q, **sizes):
    return _flops(T_k, T_q, **sizes, projections=5 * T_k + 4 * T_q)


@mistake(
    "training_flops",
    hint="The feed-forward network has two maps, up to d_ff and back.",
)
def counts_one_map(**sizes):
    return _flops(**sizes, maps=1)


@mistake("training_flops", hint="The feed-forward networks are missing.")
def forgets_the_feed_forward_networks(**sizes):
    return _flops(**sizes, maps=0)


@mistake(
    "training_flops",
    hint="The generator is missing: every target position is scored against the vocabulary.",
)
def forgets_the_generator(**sizes):
    return _flops(**sizes, head=False)


@mistake(
    "training_flops",
    hint="The generator scores target positions only, not those of the source.",
)
def scores_the_source_too(T_k, T_q, **sizes):
    return _flops(T_k, T_q, **sizes, scored=T_k + T_q)


@mistake(
    "training_flops",
    hint="There is one generator, not one in each layer: it stands behind the last one.",
)
def repeats_the_generator(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    return n_layers * _flops(T_k, T_q, d_model, d_ff, 1, vocab_size)


@mistake(
    "training_flops",
    hint="There is one generator, not one in each layer of each side: it stands behind the last "
    "layer of the decoder.",
)
def repeats_the_generator_on_each_side(T_k, T_q, n_layers, **sizes):
    return _flops(T_k, T_q, n_layers=n_layers, **sizes, scored=n_layers * (T_k + T_q))


@mistake("training_flops", hint="Only one layer on each side is counted: multiply by n_layers.")
def counts_one_layer(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    return _flops(T_k, T_q, d_model, d_ff, 1, vocab_size)


@mistake(
    "training_flops",
    hint="The embeddings are counted as products with the vocabulary. They are looked up.",
)
def multiplies_embeddings(T_k, T_q, **sizes):
    return _flops(T_k, T_q, **sizes, scored=T_k + 2 * T_q)


@mistake(
    "training_flops",
    hint="The encoder's layers are missing: what is counted are the decoder's.",
)
def forgets_the_encoder(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    layer = (6 * T_q + 2 * T_k) * d_model**2 + 2 * T_q * (T_q + T_k) * d_model
    layer += 2 * T_q * d_model * d_ff
    return 6 * (n_layers * layer + T_q * d_model * vocab_size)


@mistake("training_flops", hint="The result is a float. A count is an int.")
def returns_a_float(**sizes):
    return float(_flops(**sizes))


@alternative("training_flops")
def adds_up_matrix_products(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    def attention(queries, keys):
        rows = [(queries, d_model, d_model)] * 2 + [(keys, d_model, d_model)] * 2
        return [*rows, (queries, d_model, keys), (queries, keys, d_model)]

    def network(positions):
        return [(positions, d_model, d_ff), (positions, d_ff, d_model)]

    layer = attention(T_k, T_k) + network(T_k)
    layer += attention(T_q, T_q) + attention(T_q, T_k) + network(T_q)
    products = n_layers * layer + [(T_q, d_model, vocab_size)]
    return 6 * sum(math.prod(sizes) for sizes in products)


@alternative("training_flops")
def has_one_polynomial(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    both = T_k + T_q
    total = n_layers * (6 * both * d_model + 2 * (both**2 - T_k * T_q) + 2 * both * d_ff)
    return 6 * d_model * (total + T_q * vocab_size)
