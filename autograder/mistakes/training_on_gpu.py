"""Wrong and right answers to the exercises of lesson 12."""

import math

import torch

from autograder.checking.toolbox.registry import alternative, careless, mistake


def _flops(
    T_k,
    T_q,
    d_model,
    d_ff,
    n_layers,
    vocab_size,
    passes=3,
    operations=2,
    projections=lambda T_k, T_q: 6 * T_k + 6 * T_q,
    products=2,
    maps=2,
    own=lambda T_q: T_q * T_q,
    pairs=None,
    scored=lambda T_k, T_q: T_q,
    head=True,
):
    """A right count, unless one of the numbers at the end is given otherwise."""
    compared = T_k * T_k + own(T_q) + T_q * T_k if pairs is None else pairs(T_k, T_q)
    layer = projections(T_k, T_q) * d_model**2 + products * compared * d_model
    layer += maps * (T_k + T_q) * d_model * d_ff
    generator = scored(T_k, T_q) * d_model * vocab_size
    return passes * operations * (n_layers * layer + head * generator)


@mistake(
    "training_flops",
    hint="Only the forward pass is counted. The backward pass does twice as much: one product for "
    "the gradient of the inputs, one for that of the weights.",
)
def forgets_the_way_back(*sizes, **named):
    return _flops(*sizes, **named, passes=1)


@mistake(
    "training_flops",
    hint="The backward pass is counted like the forward pass. It has two products for each: one "
    "for the gradient of the inputs, one for that of the weights.",
)
def counts_the_way_back_once(*sizes, **named):
    return _flops(*sizes, **named, passes=2)


@mistake(
    "training_flops",
    hint="Multiplications are counted, but not additions. Each is an operation.",
)
def counts_multiplications_only(*sizes, **named):
    return _flops(*sizes, **named, operations=1)


@mistake(
    "training_flops",
    hint="Multiplications of the forward pass are counted. Each comes with an addition, and the "
    "backward pass does twice as much again: six operations in all.",
)
def counts_forward_multiplications(*sizes, **named):
    return _flops(*sizes, **named, operations=1, passes=1)


@mistake(
    "training_flops",
    hint="The decoder's cross-attention is missing: W_q and W_o work on the target, W_k and W_v on "
    "the source, and T_q · T_k pairs are compared.",
)
def forgets_the_cross_attention(*sizes, **named):
    counts = {
        "projections": lambda T_k, T_q: 4 * T_k + 4 * T_q,
        "pairs": lambda T_k, T_q: T_k * T_k + T_q * T_q,
    }
    return _flops(*sizes, **named, **counts)


@mistake(
    "training_flops",
    hint="All four projections of the cross-attention are counted on the target. Two of them, W_k "
    "and W_v, work on the source: it is read by the encoder and again in every decoder layer.",
)
def reads_the_source_once(*sizes, **named):
    return _flops(*sizes, **named, projections=lambda T_k, T_q: 4 * T_k + 8 * T_q)


@mistake(
    "training_flops",
    hint="All four projections of the cross-attention are counted on the source. Two of them, W_q "
    "and W_o, work on the target.",
)
def projects_the_source_only(*sizes, **named):
    return _flops(*sizes, **named, projections=lambda T_k, T_q: 8 * T_k + 4 * T_q)


@mistake(
    "training_flops",
    hint="The attention itself is missing: scores of all pairs of positions, and weights times "
    "values.",
)
def forgets_the_attention(*sizes, **named):
    return _flops(*sizes, **named, products=0)


@mistake(
    "training_flops",
    hint="Only one of the attention's two products is counted. There are queries times "
    "keys, and weights times values.",
)
def counts_one_product(*sizes, **named):
    return _flops(*sizes, **named, products=1)


@mistake(
    "training_flops",
    hint="In the cross-attention every target position is compared with every source position: "
    "T_q · T_k pairs.",
)
def squares_the_target_in_the_cross_attention(*sizes, **named):
    return _flops(*sizes, **named, pairs=lambda T_k, T_q: T_k * T_k + 2 * T_q * T_q)


MASKED = "Half of the decoder's scores is left out. Those that the mask hides are computed, too."


@mistake("training_flops", hint=MASKED)
def halves_the_masked_scores(*sizes, **named):
    return _flops(*sizes, **named, own=lambda T_q: T_q * T_q / 2)


@mistake("training_flops", hint=MASKED)
def halves_the_masked_scores_as_ints(*sizes, **named):
    return _flops(*sizes, **named, own=lambda T_q: T_q * T_q // 2)


@mistake("training_flops", hint=MASKED)
def counts_scores_before_the_diagonal(*sizes, **named):
    return _flops(*sizes, **named, own=lambda T_q: T_q * (T_q - 1) // 2)


@mistake("training_flops", hint=MASKED)
def counts_scores_up_to_the_diagonal(*sizes, **named):
    return _flops(*sizes, **named, own=lambda T_q: T_q * (T_q + 1) // 2)


LINEAR = "The attention's products grow with T. Scores of T queries and T keys are T² numbers."


@mistake("training_flops", hint=LINEAR)
def counts_scores_per_query(*sizes, **named):
    return _flops(*sizes, **named, pairs=lambda T_k, T_q: T_k + 2 * T_q)


@mistake("training_flops", hint=LINEAR)
def counts_scores_per_query_but_across(*sizes, **named):
    return _flops(*sizes, **named, pairs=lambda T_k, T_q: T_k + T_q + T_q * T_k)


@mistake(
    "training_flops",
    hint="The output projections are missing: an attention has four, W_o among them.",
)
def forgets_the_output_projection(*sizes, **named):
    return _flops(*sizes, **named, projections=lambda T_k, T_q: 5 * T_k + 4 * T_q)


@mistake(
    "training_flops",
    hint="The feed-forward network has two maps, up to d_ff and back.",
)
def counts_one_map(*sizes, **named):
    return _flops(*sizes, **named, maps=1)


@mistake("training_flops", hint="The feed-forward networks are missing.")
def forgets_the_feed_forward_networks(*sizes, **named):
    return _flops(*sizes, **named, maps=0)


@mistake(
    "training_flops",
    hint="The generator is missing: every target position is scored against the vocabulary.",
)
def forgets_the_generator(*sizes, **named):
    return _flops(*sizes, **named, head=False)


@mistake(
    "training_flops",
    hint="The generator scores target positions only, not those of the source.",
)
def scores_the_source_too(*sizes, **named):
    return _flops(*sizes, **named, scored=lambda T_k, T_q: T_k + T_q)


@mistake(
    "training_flops",
    hint="There is one generator, after the last layer, not one in each layer.",
)
def repeats_the_generator(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    return n_layers * _flops(T_k, T_q, d_model, d_ff, 1, vocab_size)


@mistake(
    "training_flops",
    hint="There is one generator, after the last layer of the decoder, not one in each "
    "layer of each side.",
)
def repeats_the_generator_on_each_side(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    sizes = (T_k, T_q, d_model, d_ff, n_layers, vocab_size)
    return _flops(*sizes, scored=lambda T_k, T_q: n_layers * (T_k + T_q))


@mistake("training_flops", hint="Only one layer on each side is counted: multiply by n_layers.")
def counts_one_layer(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    return _flops(T_k, T_q, d_model, d_ff, 1, vocab_size)


@mistake(
    "training_flops",
    hint="The embeddings are counted as products with the vocabulary. They are looked up.",
)
def multiplies_embeddings(*sizes, **named):
    return _flops(*sizes, **named, scored=lambda T_k, T_q: T_k + 2 * T_q)


@mistake(
    "training_flops",
    hint="The encoder's layers are missing: only the decoder's are counted.",
)
def forgets_the_encoder(T_k, T_q, d_model, d_ff, n_layers, vocab_size):
    layer = (6 * T_q + 2 * T_k) * d_model**2 + 2 * T_q * (T_q + T_k) * d_model
    layer += 2 * T_q * d_model * d_ff
    return 6 * (n_layers * layer + T_q * d_model * vocab_size)


@mistake("training_flops", hint="The result is a float. A count is an int.")
def returns_a_float(*sizes, **named):
    return float(_flops(*sizes, **named))


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


def _memory(
    B,
    T,
    d_model,
    n_heads,
    d_ff,
    n_layers,
    fused=False,
    vectors=8,
    statistics=4,
    hidden=1,
    per_head=None,
    bias=True,
    moments=2,
    size=4,
):
    """A right count, unless one of the numbers at the end is given otherwise."""
    weights = 4 * d_model**2 + 2 * d_model * d_ff + 4 * d_model
    weights += (5 * d_model + d_ff) * bias
    per_head = (1 if fused else T) if per_head is None else per_head
    kept = vectors * d_model + statistics + hidden * d_ff + n_heads * per_head
    return {
        "weights": size * n_layers * weights,
        "gradients": size * n_layers * weights,
        "moments": size * moments * n_layers * weights,
        "activations": size * n_layers * B * T * kept,
    }


@mistake(
    "training_memory",
    hint="These are numbers, not bytes: each number in float32 takes 4.",
)
def counts_numbers(*sizes, **named):
    return _memory(*sizes, **named, size=1)


@mistake(
    "training_memory",
    hint="Each number in float32 takes 4 bytes, not 2.",
)
def takes_two_bytes(*sizes, **named):
    return _memory(*sizes, **named, size=2)


@mistake(
    "training_memory",
    hint="AdamW keeps two moments for each weight, m and v. One of them is missing.",
)
def has_one_moment(*sizes, **named):
    return _memory(*sizes, **named, moments=1)


@mistake(
    "training_memory",
    hint="The parameters lack biases: all linear layers have one.",
)
def forgets_the_biases(*sizes, **named):
    return _memory(*sizes, **named, bias=False)


@mistake(
    "training_memory",
    hint="The scores are counted besides the attention's weights. Scaling keeps nothing, and "
    "softmax keeps its own result only.",
)
def keeps_the_scores(B, T, *sizes, fused=False, **named):
    return _memory(B, T, *sizes, **named, fused=fused, per_head=1 if fused else 2 * T)


@mistake(
    "training_memory",
    hint="The attention's weights are missing: softmax keeps T of them for each query of each "
    "head.",
)
def forgets_the_weights(*sizes, **named):
    return _memory(*sizes, **named, per_head=0)


@mistake(
    "training_memory",
    hint="`fused` has no effect. The kernel keeps one number for each query of each head, not T.",
)
def keeps_the_weights_when_fused(B, T, *sizes, fused=False, **named):
    return _memory(B, T, *sizes, **named, per_head=T)


@mistake(
    "training_memory",
    hint="With fused=True nothing is counted for the heads. The kernel keeps one number for each "
    "query of each head.",
)
def keeps_nothing_when_fused(B, T, *sizes, fused=False, **named):
    return _memory(B, T, *sizes, **named, per_head=0 if fused else T)


@mistake(
    "training_memory",
    hint="The attention's weights are counted once for all heads. Each head has T for each query.",
)
def has_one_head(B, T, d_model, n_heads, d_ff, n_layers, fused=False):
    return _memory(B, T, d_model, 1, d_ff, n_layers, fused)


@mistake(
    "training_memory",
    hint="The norms' two numbers for each token are missing.",
)
def forgets_the_statistics(*sizes, **named):
    return _memory(*sizes, **named, statistics=0)


@mistake(
    "training_memory",
    hint="Two numbers for each token are counted once for the layer, but it has two norms.",
)
def has_one_norm(*sizes, **named):
    return _memory(*sizes, **named, statistics=2)


@mistake(
    "training_memory",
    hint="Two vectors of d_model a token are missing. Both the input and the output of "
    "each norm are kept, since the linear maps after it keep what they are applied "
    "to. Of the attention, queries, keys, values and context are kept.",
)
def forgets_one_side_of_the_norms(*sizes, **named):
    return _memory(*sizes, **named, vectors=6)


@mistake(
    "training_memory",
    hint="Two vectors of d_model a token are too many. Is one tensor counted for each that reads "
    "it? W_q, W_k and W_v read the same one, which is kept once.",
)
def keeps_what_is_read_three_times(*sizes, **named):
    return _memory(*sizes, **named, vectors=10)


@mistake(
    "training_memory",
    hint="One vector of d_model a token is too many. The sums of the skip connections keep "
    "nothing, nor does a linear map keep what comes out of it, unless another operation does.",
)
def keeps_the_updates(*sizes, **named):
    return _memory(*sizes, **named, vectors=9)


@mistake(
    "training_memory",
    hint="One vector of d_model a token is missing. Is the context of all heads among yours? W_o "
    "is applied to it, and keeps it.",
)
def forgets_the_context(*sizes, **named):
    return _memory(*sizes, **named, vectors=7)


@mistake(
    "training_memory",
    hint="The hidden numbers are counted twice. ReLU's result is what the second map is applied "
    "to: one tensor.",
)
def keeps_the_hidden_twice(*sizes, **named):
    return _memory(*sizes, **named, hidden=2)


@mistake(
    "training_memory",
    hint="The hidden numbers of the feed-forward network are missing.",
)
def forgets_the_hidden(*sizes, **named):
    return _memory(*sizes, **named, hidden=0)


@mistake(
    "training_memory",
    hint="Activations are those of one layer. Every layer keeps its own until the backward pass.",
)
def keeps_one_layer(*sizes, **named):
    counted = _memory(*sizes, **named)
    n_layers = named["n_layers"] if "n_layers" in named else sizes[5]
    return counted | {"activations": counted["activations"] // n_layers}


@mistake(
    "training_memory",
    hint="Activations are those of one sentence. The batch has B.",
)
def keeps_one_sentence(*sizes, **named):
    counted = _memory(*sizes, **named)
    B = named["B"] if "B" in named else sizes[0]
    return counted | {"activations": counted["activations"] // B}


@mistake("training_memory", hint="Bytes are whole numbers: these are floats.")
def returns_floats(*sizes, **named):
    return {name: float(count) for name, count in _memory(*sizes, **named).items()}


@alternative("training_memory")
def lists_the_tensors(B, T, d_model, n_heads, d_ff, n_layers, fused=False):
    attention = [(d_model, d_model), (d_model,)] * 4
    network = [(d_model, d_ff), (d_ff,), (d_ff, d_model), (d_model,)]
    weights = n_layers * sum(map(math.prod, [*attention, *network, *[(d_model,)] * 4]))
    tensors = [(B, T, d_model)] * 8 + [(B, T)] * 4 + [(B, T, d_ff)]
    tensors.append((B, n_heads, T) if fused else (B, n_heads, T, T))
    activations = n_layers * sum(map(math.prod, tensors))
    numbers = {"weights": weights, "gradients": weights}
    numbers |= {"moments": 2 * weights, "activations": activations}
    return {name: 4 * count for name, count in numbers.items()}


@alternative("training_memory")
def has_one_formula_each(B, T, d_model, n_heads, d_ff, n_layers, fused=False):
    weights = n_layers * (4 * d_model * d_model + 9 * d_model + 2 * d_model * d_ff + d_ff)
    tokens = n_layers * B * T
    kept = tokens * (8 * d_model + d_ff + 4) + tokens * n_heads * (T ** (not fused))
    return {
        "activations": 4 * kept,
        "moments": 8 * weights,
        "gradients": 4 * weights,
        "weights": 4 * weights,
    }


def _finite(gradients):
    return all(torch.isfinite(gradient).all() for gradient in gradients)


def _in_float32(gradients, scale):
    return [gradient.to(torch.float32) / scale for gradient in gradients]


def _scaling(
    gradients,
    scale,
    good_steps,
    patience,
    finite=_finite,
    unscale=_in_float32,
    back=0.5,
    growth=2.0,
    late=0,
):
    """A right answer, unless one of the last arguments is given otherwise."""
    if not finite(gradients):
        return None, scale * back, 0
    unscaled = unscale(gradients, scale)
    if good_steps + 1 >= patience + late:
        return unscaled, scale * growth, 0
    return unscaled, scale, good_steps + 1


@mistake(
    "loss_scaling",
    hint="The division is done in float16, where small quotients become 0 or lose digits. Turn the "
    "gradients into float32 first.",
)
def divides_in_float16(gradients, scale, good_steps=0, patience=2000):
    def unscale(gradients, scale):
        return [(gradient / scale).float() for gradient in gradients]

    return _scaling(gradients, scale, good_steps, patience, unscale=unscale)


@mistake("loss_scaling", hint="The gradients are still float16. Weights are stored in float32.")
def stays_in_float16(gradients, scale, good_steps=0, patience=2000):
    def unscale(gradients, scale):
        return [gradient / scale for gradient in gradients]

    return _scaling(gradients, scale, good_steps, patience, unscale=unscale)


@mistake(
    "loss_scaling",
    hint="The gradients are still those of scale · loss: divide them by the scale.",
)
def leaves_the_scale(gradients, scale, good_steps=0, patience=2000):
    def unscale(gradients, scale):
        return [gradient.float() for gradient in gradients]

    return _scaling(gradients, scale, good_steps, patience, unscale=unscale)


@mistake(
    "loss_scaling",
    hint="The gradients are multiplied by the scale once more. The loss was: divide.",
)
def multiplies_again(gradients, scale, good_steps=0, patience=2000):
    def unscale(gradients, scale):
        return [gradient.float() * scale for gradient in gradients]

    return _scaling(gradients, scale, good_steps, patience, unscale=unscale)


@mistake(
    "loss_scaling",
    hint="Only infinity is looked for. Computing with infinities often gives NaN.",
)
def overlooks_nan(gradients, scale, good_steps=0, patience=2000):
    def finite(gradients):
        return not any(torch.isinf(gradient).any() for gradient in gradients)

    return _scaling(gradients, scale, good_steps, patience, finite=finite)


@mistake(
    "loss_scaling",
    hint="Only NaN is looked for. A number too large for float16 is infinite.",
)
def overlooks_infinity(gradients, scale, good_steps=0, patience=2000):
    def finite(gradients):
        return not any(torch.isnan(gradient).any() for gradient in gradients)

    return _scaling(gradients, scale, good_steps, patience, finite=finite)


@mistake(
    "loss_scaling",
    hint="Only +inf is looked for, and perhaps NaN. A gradient may also be -inf.",
)
def overlooks_negative_infinity(gradients, scale, good_steps=0, patience=2000):
    def finite(gradients):
        return not any(((one == math.inf) | one.isnan()).any() for one in gradients)

    return _scaling(gradients, scale, good_steps, patience, finite=finite)


@mistake(
    "loss_scaling",
    hint="The step is only skipped if a number is bad in every tensor. One tensor is enough.",
)
def wants_each_tensor_to_be_bad(gradients, scale, good_steps=0, patience=2000):
    def finite(gradients):
        return any(torch.isfinite(gradient).all() for gradient in gradients)

    return _scaling(gradients, scale, good_steps, patience, finite=finite)


@mistake(
    "loss_scaling",
    hint="The gradients of the step that doubles the scale are divided by the doubled one. They "
    "are those of a loss that the old one multiplied.",
)
def divides_by_the_next_scale(gradients, scale, good_steps=0, patience=2000):
    unscaled, new_scale, count = _scaling(gradients, scale, good_steps, patience)
    if unscaled is None:
        return None, new_scale, count
    return _in_float32(gradients, new_scale), new_scale, count


@mistake(
    "loss_scaling",
    hint="The scale is halved by //, which rounds down: a scale of 1 becomes 0. Divide by /.",
)
def halves_and_rounds(gradients, scale, good_steps=0, patience=2000):
    unscaled, new_scale, count = _scaling(gradients, scale, good_steps, patience)
    return unscaled, scale // 2 if unscaled is None else new_scale, count


@mistake("loss_scaling", hint="The gradients are float64. Weights are stored in float32.")
def returns_float64(gradients, scale, good_steps=0, patience=2000):
    def unscale(gradients, scale):
        return [gradient.double() / scale for gradient in gradients]

    return _scaling(gradients, scale, good_steps, patience, unscale=unscale)


@mistake("loss_scaling", hint="Only the first tensor is looked at. Any of them may overflow.")
def looks_at_the_first(gradients, scale, good_steps=0, patience=2000):
    def finite(gradients):
        return _finite(gradients[:1])

    return _scaling(gradients, scale, good_steps, patience, finite=finite)


@mistake(
    "loss_scaling",
    hint="The step is only skipped if all numbers are bad. One is enough.",
)
def wants_all_to_be_bad(gradients, scale, good_steps=0, patience=2000):
    def finite(gradients):
        return any(torch.isfinite(gradient).any() for gradient in gradients)

    return _scaling(gradients, scale, good_steps, patience, finite=finite)


@mistake(
    "loss_scaling",
    hint="The sum of the numbers is looked at. In float16 it overflows although each of them is "
    "finite: ask each number.",
)
def looks_at_the_sum(gradients, scale, good_steps=0, patience=2000):
    def finite(gradients):
        return all(torch.isfinite(gradient.sum()) for gradient in gradients)

    return _scaling(gradients, scale, good_steps, patience, finite=finite)


@mistake(
    "loss_scaling",
    hint="After a step that overflowed the scale stays as it is, so that the next one overflows "
    "again. Halve it.",
)
def keeps_the_scale(gradients, scale, good_steps=0, patience=2000):
    return _scaling(gradients, scale, good_steps, patience, back=1.0)


@mistake(
    "loss_scaling",
    hint="After a step that overflowed the scale is doubled: the next one overflows even more.",
)
def doubles_after_an_overflow(gradients, scale, good_steps=0, patience=2000):
    return _scaling(gradients, scale, good_steps, patience, back=2.0)


GROWS = (
    "The scale does not grow in time. After `patience` good steps in a row it is doubled, and the "
    "step that is taken now is one of them."
)


@mistake("loss_scaling", hint=GROWS)
def never_grows(gradients, scale, good_steps=0, patience=2000):
    return _scaling(gradients, scale, good_steps, patience, late=math.inf)


@mistake("loss_scaling", hint=GROWS)
def grows_one_step_late(gradients, scale, good_steps=0, patience=2000):
    return _scaling(gradients, scale, good_steps, patience, late=1)


@mistake(
    "loss_scaling",
    hint="When the scale has been doubled, good_steps should begin at 0 again.",
)
def counts_on(gradients, scale, good_steps=0, patience=2000):
    unscaled, scale, _ = _scaling(gradients, scale, good_steps, patience)
    return unscaled, scale, 0 if unscaled is None else good_steps + 1


@mistake(
    "loss_scaling",
    hint="After a step that was skipped, good_steps should begin at 0 again: good steps have to "
    "follow one another.",
)
def counts_on_after_an_overflow(gradients, scale, good_steps=0, patience=2000):
    unscaled, scale, count = _scaling(gradients, scale, good_steps, patience)
    return unscaled, scale, good_steps if unscaled is None else count


@mistake(
    "loss_scaling",
    hint="The numbers that are not finite are set to 0 and the step is taken. It has to be "
    "skipped: return None instead of gradients.",
)
def replaces_what_is_bad(gradients, scale, good_steps=0, patience=2000):
    unscaled, new_scale, count = _scaling(gradients, scale, good_steps, patience)
    if unscaled is None:
        unscaled = [torch.nan_to_num(one, 0.0, 0.0, 0.0) for one in _in_float32(gradients, scale)]
    return unscaled, new_scale, count


@alternative("loss_scaling")
def divides_first(gradients, scale, good_steps=0, patience=2000):
    unscaled = [gradient.float() * (1 / scale) for gradient in gradients]
    bad = sum(int((~torch.isfinite(one)).sum()) for one in unscaled)
    if bad:
        return None, 0.5 * scale, 0
    grows = (good_steps + 1) % patience == 0
    return unscaled, scale * (2.0 if grows else 1.0), 0 if grows else good_steps + 1


@alternative("loss_scaling")
def loops_over_gradients(gradients, scale, good_steps=0, patience=2000):
    unscaled = []
    for gradient in gradients:
        wide = gradient.to(torch.float64)
        if (wide - wide != 0).any():  # inf - inf and NaN - NaN are NaN
            return None, scale / 2.0, 0
        unscaled.append((wide / scale).to(torch.float32))
    good_steps += 1
    if good_steps < patience:
        return unscaled, scale, good_steps
    return unscaled, 2.0 * scale, 0


@careless("loss_scaling")
def writes_into_the_list(gradients, scale, good_steps=0, patience=2000):
    for place, gradient in enumerate(gradients):
        gradients[place] = gradient.float() / scale
    return _scaling(gradients, scale, good_steps, patience, unscale=lambda unscaled, _: unscaled)


@careless("loss_scaling")
def goes_through_rows(gradients, scale, good_steps=0, patience=2000):
    def finite(gradients):
        return all(row.isfinite().all() for gradient in gradients for row in gradient)

    return _scaling(gradients, scale, good_steps, patience, finite=finite)


@mistake(
    "data_parallel_gradients",
    hint="Every process counts the same, however few tokens its share has. Weight each with its "
    "part of all tokens.",
)
def averages_the_processes(gradients, tokens):
    joined = []
    for place in range(len(gradients[0])):
        total = torch.zeros_like(gradients[0][place])
        for process in gradients:
            total = total + process[place]
        joined.append(total / len(gradients))
    return joined


def _all(tokens):
    return sum(tokens) or 1


def _joined(gradients, weights):
    return [
        sum(weight * one for weight, one in zip(weights, parts, strict=True))
        for parts in zip(*gradients, strict=True)
    ]


@mistake(
    "data_parallel_gradients",
    hint="The gradients are added up. Each belongs to a mean, so the result has to be a mean too.",
)
def adds_them_up(gradients, tokens):
    return _joined(gradients, [1] * len(tokens))


@mistake(
    "data_parallel_gradients",
    hint="Gradients times tokens belong to a sum. Divide by the number of all tokens.",
)
def forgets_to_divide(gradients, tokens):
    return _joined(gradients, tokens)


@mistake(
    "data_parallel_gradients",
    hint="The shares sum to 1 already, and the result is divided by the number of processes as "
    "well.",
)
def divides_twice(gradients, tokens):
    return _joined(gradients, [count / _all(tokens) / len(tokens) for count in tokens])


@mistake(
    "data_parallel_gradients",
    hint="Gradients times tokens are added up, and the sum is divided by the number of processes. "
    "Divide it by the number of all tokens.",
)
def divides_by_the_number_of_processes(gradients, tokens):
    return _joined(gradients, [count / len(tokens) for count in tokens])


@mistake(
    "data_parallel_gradients",
    hint="The shares are rounded down to whole numbers: `//` leaves 0 of them, unless one process "
    "has all tokens.",
)
def rounds_the_shares_down(gradients, tokens):
    return _joined(gradients, [count // _all(tokens) for count in tokens])


@mistake(
    "data_parallel_gradients",
    hint="The shares are a softmax of the tokens, which exaggerates differences. A share "
    "is the tokens of one process divided by all tokens.",
)
def takes_a_softmax_of_the_tokens(gradients, tokens):
    return _joined(gradients, torch.tensor(tokens, dtype=torch.float64).softmax(0).tolist())


@mistake(
    "data_parallel_gradients",
    hint="The gradients are divided by the largest number of tokens. Divide by the number "
    "of all tokens.",
)
def divides_by_the_largest_share(gradients, tokens):
    return _joined(gradients, [count / (max(tokens) or 1) for count in tokens])


@mistake(
    "data_parallel_gradients",
    hint="Each share is multiplied by the number of processes. That is right before an average "
    "over them; here they are added up.",
)
def multiplies_by_the_processes(gradients, tokens):
    return _joined(gradients, [count / _all(tokens) * len(tokens) for count in tokens])


@mistake(
    "data_parallel_gradients",
    hint="The gradients are divided by their tokens, but they are those of a mean already. "
    "A share with more tokens counts more, not less.",
)
def divides_by_the_tokens(gradients, tokens):
    return _joined(gradients, [1 / max(1, count) / len(tokens) for count in tokens])


@mistake(
    "data_parallel_gradients",
    hint="These are the gradients of one process. All of them take part.",
)
def takes_the_largest_share(gradients, tokens):
    return list(gradients[tokens.index(max(tokens))])


@mistake(
    "data_parallel_gradients",
    hint="Processes and parameters are exchanged: each process has a list of one gradient for "
    "each parameter. Add up over the processes, for each parameter.",
)
def adds_up_the_parameters(gradients, tokens):
    return [
        sum(one.sum() * count / _all(tokens) for one in process)
        for process, count in zip(gradients, tokens, strict=True)
    ]


@mistake(
    "data_parallel_gradients",
    hint="The first process is left out.",
)
def leaves_the_first_process_out(gradients, tokens):
    return _joined(gradients, [0, *(count / _all(tokens) for count in tokens[1:])])


NOTHING_TO_COUNT = (
    "Where no share has a token, the sum of the tokens is 0, and this divides by it. All gradients "
    "are 0 then, whatever they are weighted with: take care that nothing is divided by 0."
)


@mistake("data_parallel_gradients", hint=NOTHING_TO_COUNT)
def divides_by_no_tokens(gradients, tokens):
    return _joined(gradients, [count / sum(tokens) for count in tokens])


@mistake("data_parallel_gradients", hint=NOTHING_TO_COUNT)
def divides_tensors_by_no_tokens(gradients, tokens):
    return [one / sum(tokens) for one in _joined(gradients, tokens)]


@alternative("data_parallel_gradients")
def stacks_them(gradients, tokens):
    joined = []
    for parts in zip(*gradients, strict=True):
        stacked = torch.stack(list(parts))
        weights = torch.tensor(tokens, dtype=stacked.dtype, device=stacked.device)
        joined.append(torch.tensordot(weights / weights.sum().clamp(min=1), stacked, dims=1))
    return joined


@alternative("data_parallel_gradients")
def adds_sums_and_divides(gradients, tokens):
    sums = None
    for process, count in zip(gradients, tokens, strict=True):
        own = [count * one for one in process]
        sums = own if sums is None else [a + b for a, b in zip(sums, own, strict=True)]
    return [one / _all(tokens) for one in sums]


@careless("data_parallel_gradients")
def makes_shares_of_the_tokens(gradients, tokens):
    total = _all(tokens)
    for process in range(len(tokens)):
        tokens[process] /= total
    return _joined(gradients, tokens)


@careless("data_parallel_gradients")
def adds_to_the_first_process(gradients, tokens):
    first, total = gradients[0], _all(tokens)
    for place in range(len(first)):
        first[place] *= tokens[0] / total
        for process, count in zip(gradients[1:], tokens[1:], strict=True):
            first[place] += process[place] * count / total
    return first


@mistake(
    "break_data_parallel_gradients",
    hint="There is only one process: it has the whole batch.",
    where=lambda gradients, tokens: len(tokens) == 1,
)
def one_process():
    return [[torch.tensor([1.0, 2.0])]], [3]


@mistake(
    "break_data_parallel_gradients",
    hint="All shares have the same number of tokens, so each process counts as much as it should.",
    where=lambda gradients, tokens: len(set(tokens)) == 1,
)
def shares_of_equal_size():
    return [[torch.tensor([1.0])], [torch.tensor([5.0])]], [3, 3]


@mistake(
    "break_data_parallel_gradients",
    hint="All processes have the same gradients, and every mean of them is the same.",
    where=lambda gradients, tokens: all(
        torch.equal(one, other)
        for process in gradients
        for one, other in zip(process, gradients[0], strict=True)
    ),
)
def equal_gradients():
    return [[torch.tensor([2.0])], [torch.tensor([2.0])]], [3, 1]


@alternative("break_data_parallel_gradients")
def three_processes():
    gradients = [[torch.tensor([1.0, 0.0]), torch.tensor(2.0)] for _ in range(2)]
    return [*gradients, [torch.tensor([4.0, 4.0]), torch.tensor(0.0)]], [2, 2, 9]


@alternative("break_data_parallel_gradients")
def a_share_without_tokens():
    return [[torch.tensor([[6.0]])], [torch.tensor([[0.0]])]], [7, 0]


EQUIVALENT = {
    "data_parallel_gradients: without `strict` in one call of `zip`: return [sum((share * "
    "gradient for share, gradient in zip(shares, parts, strict=True))) for parts in "
    "zip(*gradients)]": ("there are as many gradients from each process as parameters"),
    "data_parallel_gradients: with two arguments of one call of `zip` exchanged: return "
    "[sum((share * gradient for share, gradient in zip(parts, shares, strict=True))) for "
    "parts in zip(*gradients, str…": ("multiplication may be done in either order"),
    "data_parallel_gradients: without `strict` in one call of `zip`: return [sum((share * "
    "gradient for share, gradient in zip(shares, parts))) for parts in zip(*gradients, "
    "strict=True)]": ("there is a number of tokens for each process"),
    "data_parallel_gradients: with False once where True belongs: return [sum((share * "
    "gradient for share, gradient in zip(shares, parts, strict=True))) for parts in "
    "zip(*gradients, str…": ("there are as many gradients from each process as parameters"),
    "data_parallel_gradients: with False once where True belongs: return [sum((share * "
    "gradient for share, gradient in zip(shares, parts, strict=False))) for parts in "
    "zip(*gradients, st…": ("there is a number of tokens for each process"),
}
