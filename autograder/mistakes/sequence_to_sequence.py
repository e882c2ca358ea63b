"""Wrong and right answers to the exercises of lesson 02."""

from functools import partial

import torch
from torch.nn import functional

from attention.provided.data.tokens import BOS, EOS, PAD
from attention.sequence_to_sequence import decoder_step
from autograder.checking.toolbox.registry import again, alternative, careless, mistake


def _gates(x, h, W_x, W_h, b_x, b_h):
    x_r, x_z, x_n = (x @ W_x.T + b_x).chunk(3, 1)
    h_r, h_z, h_n = (h @ W_h.T + b_h).chunk(3, 1)
    return torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z), x_n, h_n


@mistake(
    "gru_step",
    hint="Reset and update gate have changed places. The first d rows make r, the next d make z.",
    earns=("the biases",),
)
def swaps_the_gates(x, h, W_x, W_h, b_x, b_h):
    z, r, x_n, h_n = _gates(x, h, W_x, W_h, b_x, b_h)
    return (1 - z) * torch.tanh(x_n + r * h_n) + z * h


@mistake(
    "gru_step",
    hint="The mixture is the wrong way round: with z = 1 the old state should stay as it is.",
    earns=("the reset gate", "the biases"),
)
def mixes_the_wrong_way_round(x, h, W_x, W_h, b_x, b_h):
    r, z, x_n, h_n = _gates(x, h, W_x, W_h, b_x, b_h)
    return z * torch.tanh(x_n + r * h_n) + (1 - z) * h


@mistake(
    "gru_step",
    hint="The reset gate multiplies h before the matrix product. That is a GRU too (the first "
    "paper's), but here r multiplies W_hn h + b_hn, after the product.",
    earns=("the update gate", "the biases"),
)
def resets_before_the_product(x, h, W_x, W_h, b_x, b_h):
    r, z, x_n, _ = _gates(x, h, W_x, W_h, b_x, b_h)
    n = torch.tanh(x_n + (r * h) @ W_h.chunk(3)[2].T + b_h.chunk(3)[2])
    return (1 - z) * n + z * h


@mistake(
    "gru_step",
    hint="The reset gate has no effect on the candidate. What does it multiply?",
    earns=("the update gate", "the biases"),
)
def never_resets(x, h, W_x, W_h, b_x, b_h):
    _, z, x_n, h_n = _gates(x, h, W_x, W_h, b_x, b_h)
    return (1 - z) * torch.tanh(x_n + h_n) + z * h


@mistake(
    "gru_step",
    hint="The reset gate multiplies the input's part too. It only resets the past.",
    earns=("the update gate", "the biases"),
)
def resets_the_input(x, h, W_x, W_h, b_x, b_h):
    r, z, x_n, h_n = _gates(x, h, W_x, W_h, b_x, b_h)
    return (1 - z) * torch.tanh(r * (x_n + h_n)) + z * h


@mistake(
    "gru_step",
    hint="The candidate goes through a sigmoid, so it is never negative. A gate lies between 0 "
    "and 1; a state should lie between -1 and 1.",
)
def squashes_the_candidate_like_a_gate(x, h, W_x, W_h, b_x, b_h):
    r, z, x_n, h_n = _gates(x, h, W_x, W_h, b_x, b_h)
    return (1 - z) * torch.sigmoid(x_n + r * h_n) + z * h


@mistake(
    "gru_step",
    hint="The biases b_h are missing: the state's own matrix has biases as well.",
    earns=("the update gate", "the reset gate"),
)
def forgets_the_hidden_biases(x, h, W_x, W_h, b_x, b_h):
    r, z, x_n, h_n = _gates(x, h, W_x, W_h, b_x, torch.zeros_like(b_h))
    return (1 - z) * torch.tanh(x_n + r * h_n) + z * h


@mistake(
    "gru_step",
    hint="The biases b_x are missing: the input's matrix has biases as well.",
    earns=("the update gate", "the reset gate"),
)
def forgets_the_input_biases(x, h, W_x, W_h, b_x, b_h):
    r, z, x_n, h_n = _gates(x, h, W_x, W_h, torch.zeros_like(b_x), b_h)
    return (1 - z) * torch.tanh(x_n + r * h_n) + z * h


@mistake("gru_step", hint="Both biases, b_x and b_h, are missing.")
def forgets_all_biases(x, h, W_x, W_h, b_x, b_h):
    r, z, x_n, h_n = _gates(x, h, W_x, W_h, torch.zeros_like(b_x), torch.zeros_like(b_h))
    return (1 - z) * torch.tanh(x_n + r * h_n) + z * h


@mistake(
    "gru_step",
    hint="In the candidate, b_hn is added after the reset. r multiplies all of W_hn h + b_hn.",
    earns=("the update gate", "the reset gate"),
)
def leaves_the_bias_out_of_the_reset(x, h, W_x, W_h, b_x, b_h):
    r, z, x_n, h_n = _gates(x, h, W_x, W_h, b_x, b_h)
    b_n = b_h.chunk(3)[2]
    return (1 - z) * torch.tanh(x_n + r * (h_n - b_n) + b_n) + z * h


@mistake(
    "gru_step",
    hint="The gates go through a tanh, so they can be negative. A gate opens from 0 to 1: sigmoid.",
)
def squashes_the_gates_like_a_state(x, h, W_x, W_h, b_x, b_h):
    r, z, x_n, h_n = _gates(x, h, W_x, W_h, b_x, b_h)
    r, z = torch.tanh(r.logit()), torch.tanh(z.logit())
    return (1 - z) * torch.tanh(x_n + r * h_n) + z * h


@mistake(
    "gru_step",
    hint="This is the candidate n. The new state is a mixture of n and the old state, by z.",
)
def returns_the_candidate(x, h, W_x, W_h, b_x, b_h):
    r, _, x_n, h_n = _gates(x, h, W_x, W_h, b_x, b_h)
    return torch.tanh(x_n + r * h_n)


@mistake(
    "gru_step",
    hint="chunk cuts along axis 0, the batch, unless another is named. The three gates lie side by "
    "side, along axis 1.",
)
def cuts_the_batch(x, h, W_x, W_h, b_x, b_h):
    x_r, x_z, x_n = (x @ W_x.T + b_x).chunk(3)
    h_r, h_z, h_n = (h @ W_h.T + b_h).chunk(3)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    return (1 - z) * torch.tanh(x_n + r * h_n) + z * h


@alternative("gru_step")
def with_gru_cell(x, h, W_x, W_h, b_x, b_h):
    return torch.gru_cell(x, h, W_x, W_h, b_x, b_h)


@alternative("gru_step")
def gate_by_gate(x, h, W_x, W_h, b_x, b_h):
    d = h.shape[1]
    reads = [torch.einsum("bi,oi->bo", x, W_x[g * d : g * d + d]) for g in range(3)]
    keeps = [torch.einsum("bi,oi->bo", h, W_h[g * d : g * d + d]) for g in range(3)]
    r, z = (
        1 / (1 + torch.exp(-(reads[g] + keeps[g] + (b_x + b_h)[g * d : g * d + d])))
        for g in range(2)
    )
    n = torch.tanh(reads[2] + b_x[2 * d :] + r * (keeps[2] + b_h[2 * d :]))
    return n + z * (h - n)


@careless("gru_step")
def writes_into_zeros(x, h, W_x, W_h, b_x, b_h):
    r, z, x_n, h_n = _gates(x, h, W_x, W_h, b_x, b_h)
    new = torch.zeros(h.shape)
    for row in range(len(h)):
        n = torch.tanh(x_n[row] + r[row] * h_n[row])
        new[row] = (1 - z[row]) * n + z[row] * h[row]
    return new


@careless("gru_step")
def overwrites_the_state(x, h, W_x, W_h, b_x, b_h):
    r, z, x_n, h_n = _gates(x, h, W_x, W_h, b_x, b_h)
    h *= z
    h += (1 - z) * torch.tanh(x_n + r * h_n)
    return h


@careless("gru_step")
def divides_infinity_by_infinity(x, h, W_x, W_h, b_x, b_h):
    seen, kept = (x @ W_x.T + b_x).chunk(3, 1), (h @ W_h.T + b_h).chunk(3, 1)
    r, z = (torch.exp(seen[i] + kept[i]) / (1 + torch.exp(seen[i] + kept[i])) for i in range(2))
    return (1 - z) * torch.tanh(seen[2] + r * kept[2]) + z * h


@mistake(
    "encode",
    hint="The state is taken at the padded end: shorter sequences have read padding after their "
    "last token, and their states have moved on.",
)
def takes_the_padded_end(states, lengths):
    return states[:, -1]


@mistake(
    "encode",
    hint="One step too far: after n tokens the state stands at index n - 1.",
)
def goes_one_step_too_far(states, lengths):
    return states[torch.arange(len(lengths)), lengths]


@mistake("encode", hint="One step too early: the last true token has not been read yet.")
def stops_one_step_early(states, lengths):
    return states[torch.arange(len(lengths)), (lengths - 2).clamp(min=0)]


@mistake(
    "encode",
    hint="Every row is paired with every length. Index rows and steps together, one of each per "
    "sequence.",
)
def pairs_every_row_with_every_length(states, lengths):
    return states[:, lengths - 1]


@mistake(
    "encode",
    hint="All true states are averaged. The encoding here is the last state alone.",
)
def averages_the_states(states, lengths):
    inside = torch.arange(states.shape[1]) < lengths[:, None]
    return (states * inside[:, :, None]).sum(1) / lengths[:, None]


@mistake("encode", hint="The first state of each sequence has read a single token.")
def takes_the_first_state(states, lengths):
    return states[:, 0]


@mistake(
    "encode",
    hint="The lengths choose among the sequences of the batch, axis 0. They say where each "
    "sequence ends, on axis 1.",
)
def picks_among_the_batch(states, lengths):
    return states[lengths - 1]


@mistake(
    "encode",
    hint="All true states are added up. The encoding here is the last state alone.",
)
def adds_up_the_states(states, lengths):
    is_token = torch.arange(states.shape[1]) < lengths[:, None]
    return (states * is_token[..., None]).sum(1)


@alternative("encode")
def with_gather(states, lengths):
    index = (lengths - 1).view(-1, 1, 1).expand(-1, 1, states.shape[2])
    return states.gather(1, index).squeeze(1)


@alternative("encode")
def row_by_row(states, lengths):
    return torch.stack([states[row, int(length) - 1] for row, length in enumerate(lengths)])


@careless("encode")
def picks_into_zeros(states, lengths):
    picked = torch.zeros(len(states), states.shape[2])
    for row, length in enumerate(lengths):
        picked[row] = states[row, length - 1]
    return picked


@careless("encode")
def picks_from_lists(states, lengths):
    rows = zip(states.tolist(), lengths.tolist(), strict=True)
    return torch.tensor([row[length - 1] for row, length in rows])


@mistake(
    "reverse_source",
    hint="The padding is reversed as well: short sequences now begin with it.",
)
def turns_the_padding_around(source, lengths):
    return source.flip(1)


@mistake("reverse_source", hint="The batch is reversed, not the sequences in it.")
def turns_the_batch_around(source, lengths):
    return source.flip(0)


@mistake(
    "reverse_source",
    hint="The last token (EOS) stays where it is. It counts towards the length, so it is reversed "
    "with the rest.",
)
def leaves_the_last_token(source, lengths):
    turned = source.clone()
    for row, length in enumerate(lengths.tolist()):
        turned[row, : length - 1] = source[row, : length - 1].flip(0)
    return turned


@mistake(
    "reverse_source",
    hint="The numbers of each vector are reversed. One row is (T, d): flip its axis 0, the steps.",
)
def turns_the_features_around(source, lengths):
    turned = source.clone()
    for row, length in enumerate(lengths.tolist()):
        turned[row, :length] = source[row, :length].flip(-1)
    return turned


@mistake(
    "reverse_source",
    hint="The result is right, but it was written into the input. Work on a clone.",
)
def writes_into_the_input(source, lengths):
    for row, length in enumerate(lengths.tolist()):
        source[row, :length] = source[row, :length].flip(0)
    return source


@alternative("reverse_source")
def with_an_index_table(source, lengths):
    steps = torch.arange(source.shape[1], device=source.device)
    mirrored = lengths[:, None] - 1 - steps
    rows = torch.arange(len(source))[:, None]
    return source[rows, torch.where(mirrored >= 0, mirrored, steps)]


@alternative("reverse_source")
def row_by_row_and_stacked(source, lengths):
    rows = zip(source, lengths.tolist(), strict=True)
    return torch.stack([torch.cat([row[:length].flip(0), row[length:]]) for row, length in rows])


@careless("reverse_source")
def fills_up_with_zeros(source, lengths):
    turned = torch.zeros_like(source)
    for row, length in enumerate(lengths.tolist()):
        turned[row, :length] = source[row, :length].flip(0)
    return turned


@careless("reverse_source")
def reverses_lists(source, lengths):
    rows = zip(source.tolist(), lengths.tolist(), strict=True)
    return torch.tensor([row[:length][::-1] + row[length:] for row, length in rows])


@mistake(
    "shift_right",
    hint="BOS is forgotten: the last token has wrapped around to the front.",
)
def forgets_bos(target):
    return target.roll(1, dims=1)


@mistake(
    "shift_right",
    hint="The decoder reads the very token that it should predict. It would learn to copy.",
)
def shows_the_answer(target):
    return target.clone()


@mistake("shift_right", hint="This shifts to the left: the decoder would see the next token.")
def shifts_left(target):
    return torch.cat([target[:, 1:], torch.full_like(target[:, :1], PAD)], 1)


@mistake("shift_right", hint="The first token read is PAD. A sequence begins with BOS.")
def begins_with_padding(target):
    return functional.pad(target[:, :-1], (1, 0), value=PAD)


@mistake("shift_right", hint="The first token read is EOS. A sequence begins with BOS.")
def begins_with_eos(target):
    return functional.pad(target[:, :-1], (1, 0), value=EOS)


@mistake(
    "shift_right",
    hint="One column too many: nothing has to be predicted after the last token, so it is not "
    "read either.",
)
def keeps_the_last_column(target):
    return functional.pad(target, (1, 0), value=BOS)


@mistake(
    "shift_right",
    hint="The first token is overwritten with BOS, and nothing has moved.",
)
def overwrites_the_first_token(target):
    return functional.pad(target[:, 1:], (1, 0), value=BOS)


@mistake("shift_right", hint="This shifts to the left: the decoder would see the next token.")
def shifts_left_and_ends(target):
    return torch.cat([target[:, 1:], torch.full_like(target[:, :1], EOS)], 1)


@mistake(
    "shift_right",
    hint="The sequences have moved down in the batch, along axis 0. The tokens of each should "
    "move, along axis 1.",
)
def shifts_the_batch(target):
    return torch.cat([torch.full_like(target[:1], BOS), target[:-1]], 0)


@alternative("shift_right")
def rolls_and_overwrites(target):
    shifted = target.roll(1, dims=1)
    shifted[:, 0] = BOS
    return shifted


@alternative("shift_right")
def as_lists(target):
    return torch.tensor([[BOS, *row][:-1] for row in target.tolist()], device=target.device)


@careless("shift_right")
def begins_on_the_cpu(target):
    return torch.cat([torch.full((len(target), 1), BOS), target[:, :-1]], dim=1)


@careless("shift_right")
def shifts_the_target_itself(target):
    target[:, 1:] = target[:, :-1].clone()
    target[:, 0] = BOS
    return target


def _losses(logits, target):
    return functional.cross_entropy(logits.transpose(1, 2), target, reduction="none")


@mistake(
    "masked_cross_entropy",
    hint="The sum over true tokens is divided by all positions: padding dilutes the average.",
    earns=("without padding", "huge scores and −∞"),
)
def averages_over_padding(logits, target):
    return (_losses(logits, target) * (target != PAD)).mean()


@mistake("masked_cross_entropy", hint="Padding is scored like a token. Leave these positions out.")
def scores_the_padding(logits, target):
    return _losses(logits, target).mean()


@mistake(
    "masked_cross_entropy",
    hint="Each sequence is averaged first, then the batch: tokens of short sequences count more.",
    earns=("without padding", "huge scores and −∞"),
)
def averages_each_sequence_first(logits, target):
    means = []
    for scores, ids in zip(logits.log_softmax(-1), target, strict=True):
        of_true = [-line[token] for line, token in zip(scores, ids, strict=True) if token != 0]
        means.append(sum(of_true) / len(of_true))  # of one sequence, without padding
    return sum(means) / len(means)  # and of the batch


@mistake(
    "masked_cross_entropy",
    hint="Each sequence is averaged first, then the batch: tokens of short sequences count more.",
)
def averages_each_row_first(logits, target):
    mask = target != PAD
    return ((_losses(logits, target) * mask).sum(1) / mask.sum(1)).mean()


@mistake(
    "masked_cross_entropy",
    hint="There is a mean for each sequence. One mean over all true tokens is asked for.",
)
def returns_a_mean_for_each_sequence(logits, target):
    mask = target != PAD
    return (_losses(logits, target) * mask).sum(1) / mask.sum(1)


@mistake(
    "masked_cross_entropy",
    hint="This is the sum over the tokens. The mean is asked for.",
    earns=("huge scores and −∞",),
)
def adds_up(logits, target):
    return (_losses(logits, target) * (target != PAD)).sum()


@mistake(
    "masked_cross_entropy",
    hint="The total is divided by the number of sequences, not of tokens.",
)
def divides_by_the_batch_size(logits, target):
    return (_losses(logits, target) * (target != PAD)).sum() / len(target)


@mistake(
    "masked_cross_entropy",
    hint="The softmax runs along the steps. Probabilities are shared among the vocabulary.",
)
def shares_among_the_steps(logits, target):
    log_p = logits.log_softmax(1).gather(2, target[:, :, None])[:, :, 0]
    return -log_p[target != PAD].mean()


@mistake(
    "masked_cross_entropy",
    hint="These are probabilities, not their logarithms.",
)
def forgets_the_log(logits, target):
    p = logits.softmax(2).gather(2, target[:, :, None])[:, :, 0]
    return -p[target != PAD].mean()


@mistake(
    "masked_cross_entropy",
    hint="Logits are not yet logarithms of probabilities. They go through a log-softmax first.",
)
def forgets_the_softmax(logits, target):
    return -logits.gather(2, target[:, :, None])[:, :, 0][target != PAD].mean()


@mistake(
    "masked_cross_entropy",
    hint="EOS is left out as well. It is a token like the others: the decoder must learn to stop.",
    earns=("without padding", "huge scores and −∞"),
)
def leaves_out_eos(logits, target):
    return _losses(logits, target)[target > EOS].mean()


@mistake("masked_cross_entropy", hint="The sign: log p is negative, a loss is not.")
def forgets_the_minus(logits, target):
    return -_losses(logits, target)[target != PAD].mean()


@mistake(
    "masked_cross_entropy",
    hint="A probability of 0 has the logarithm -inf. Take the logarithm of the softmax in one "
    "step, from the scores.",
    earns=("without padding", "with padding"),
)
def takes_the_log_of_a_rounded_probability(logits, target):
    p = logits.softmax(2).gather(2, target[:, :, None])[:, :, 0]
    return -p.log()[target != PAD].mean()


def _selecting_or_multiplying(known, multiplies):
    """The same mistake, where PAD has a score of -inf: padding chosen, or multiplied by 0."""

    def answer(logits, target):
        of_pad = logits[..., PAD][target == PAD]
        loss = known.target(logits.clamp(min=-1e30), target)
        return loss + 0 * of_pad.sum() if multiplies else loss

    answer.__name__ = f"{known.name}_{'times_a_mask' if multiplies else 'selected'}"
    return answer


# Learners leave padding out in one way or the other, whatever else is wrong.
again(
    "masked_cross_entropy",
    *(partial(_selecting_or_multiplying, multiplies=one) for one in (False, True)),
)


@mistake(
    "masked_cross_entropy",
    hint="Where the score of PAD is -inf the loss at padding is infinite, and 0 times infinity is "
    "NaN. Choose the true tokens, losses[mask], instead of multiplying by a mask.",
    earns=("without padding", "with padding"),
)
def multiplies_by_the_mask(logits, target):
    mask = target != PAD
    return (_losses(logits, target) * mask).sum() / mask.sum()


@mistake(
    "masked_cross_entropy",
    hint="Where all targets are PAD, the mean of no losses is 0 / 0, which is NaN. The loss is 0 "
    "there: divide their sum by the number of tokens, or by 1 if that is 0.",
)
def averages_no_losses(logits, target):
    return _losses(logits, target)[target != PAD].mean()


@mistake(
    "masked_cross_entropy",
    hint="The mask is the wrong way round: only padding is counted.",
)
def counts_only_padding(logits, target):
    return _losses(logits, target)[target == PAD].mean()


@alternative("masked_cross_entropy")
def with_ignore_index(logits, target):
    flat = logits.flatten(0, 1), target.flatten()
    total = functional.cross_entropy(*flat, ignore_index=PAD, reduction="sum")
    return total / max(1, int((target != PAD).sum()))


@alternative("masked_cross_entropy")
def sum_over_count(logits, target):
    mask = (target != PAD).to(logits.dtype)
    log_p = logits - logits.logsumexp(2, keepdim=True)
    picked = log_p.masked_fill(functional.one_hot(target, logits.shape[2]) == 0, 0.0).sum(2)
    return -picked.masked_fill(mask == 0, 0.0).sum() / mask.sum().clamp(min=1)


@alternative("masked_cross_entropy")
def mean_of_what_counts(logits, target):
    log_p = logits.log_softmax(2).gather(2, target[..., None])[..., 0][target != PAD]
    return -log_p.mean() if len(log_p) else log_p.sum()


@careless("masked_cross_entropy")
def adds_to_a_zero(logits, target):
    log_p, total = logits.log_softmax(2), torch.tensor(0.0)
    for scores, ids in zip(log_p.flatten(0, 1), target.flatten().tolist(), strict=True):
        if ids != PAD:
            total -= scores[ids]
    return total / (target != PAD).sum().clamp(min=1)


@careless("masked_cross_entropy")
def collects_in_float32(logits, target):
    losses = torch.zeros(target.shape)
    for row, ids in enumerate(target.tolist()):
        for step, token in enumerate(ids):
            losses[row, step] = -logits[row, step].log_softmax(0)[token]
    return losses[target != PAD].sum() / (target != PAD).sum().clamp(min=1)


def _decode(
    state, context, weights, max_length, first=BOS, feed=True, carry=True, stop=torch.all, fill=True
):
    """Greedy decoding with its parts left out one at a time."""
    tokens = torch.full((len(state),), first)
    ended, written = torch.zeros(len(state), dtype=torch.bool), []
    while len(written) < max_length and not (stop and stop(ended)):
        logits, new = decoder_step(tokens, state, context, weights)
        state = new if carry else state
        chosen = logits.argmax(1)
        chosen = chosen.masked_fill(ended, PAD) if fill else chosen
        tokens = chosen if feed else tokens
        written.append(chosen)
        ended = ended | (chosen == EOS)
    return torch.stack(written, 1)


@mistake("greedy_decode", hint="The first token read is PAD. A sequence begins with BOS.")
def forgets_to_begin(state, context, weights, max_length):
    return _decode(state, context, weights, max_length, first=PAD)


@mistake(
    "greedy_decode",
    hint="Every step reads BOS again. A step should read what the step before has written.",
)
def never_reads_its_own_words(state, context, weights, max_length):
    return _decode(state, context, weights, max_length, feed=False)


@mistake(
    "greedy_decode",
    hint="Every step starts from the encoding again: the new state is not carried on.",
    earns=("rows that end one by one", "the number of steps"),
)
def forgets_the_state(state, context, weights, max_length):
    return _decode(state, context, weights, max_length, carry=False)


@mistake(
    "greedy_decode",
    hint="It goes on to max_length although all rows have ended. Stop when every row has its EOS.",
    earns=("rows that end together", "rows that end one by one"),
)
def never_stops(state, context, weights, max_length):
    return _decode(state, context, weights, max_length, stop=None)


@mistake(
    "greedy_decode",
    hint="It stops as soon as one row has ended, and cuts the others off.",
    earns=("rows that end together", "the number of steps"),
)
def stops_with_the_first_row(state, context, weights, max_length):
    return _decode(state, context, weights, max_length, stop=torch.any)


@mistake(
    "greedy_decode",
    hint="A row that has ended goes on writing while it waits for the others. Put PAD there.",
    earns=("rows that end together", "the number of steps"),
)
def writes_after_the_end(state, context, weights, max_length):
    return _decode(state, context, weights, max_length, fill=False)


@mistake(
    "greedy_decode",
    hint="BOS is read, not written: the result begins with the first letter.",
    earns=("rows that end one by one", "the number of steps"),
)
def writes_bos(state, context, weights, max_length):
    return functional.pad(_decode(state, context, weights, max_length), (1, 0), value=BOS)


@mistake(
    "greedy_decode",
    hint="Steps run down and sequences across. The steps belong on axis 1: stack along dim=1.",
)
def stacks_along_the_batch(state, context, weights, max_length):
    return _decode(state, context, weights, max_length).T


@mistake(
    "greedy_decode",
    hint="EOS itself is not written: a row gets PAD only from the step after its EOS.",
    earns=("the number of steps",),
)
def swallows_eos(state, context, weights, max_length):
    written = _decode(state, context, weights, max_length)
    return written.masked_fill(written == EOS, PAD)


@mistake(
    "greedy_decode",
    hint="A row that has ended begins again: `ended` only remembers the last step. Once ended, "
    "always ended.",
    earns=("rows that end together", "the number of steps"),
)
def forgets_who_has_ended(state, context, weights, max_length):
    tokens = torch.full((len(state),), BOS)
    ended, written = torch.zeros(len(state), dtype=torch.bool), []
    while len(written) < max_length and not ended.all():
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = logits.argmax(1).masked_fill(ended, PAD)
        written.append(tokens)
        ended = tokens == EOS
    return torch.stack(written, 1)


@mistake(
    "greedy_decode",
    hint="max_length has no effect: a row without EOS goes on beyond it.",
    earns=("rows that end together", "rows that end one by one"),
)
def ignores_max_length(state, context, weights, max_length):
    return _decode(state, context, weights, 20)


@mistake(
    "greedy_decode",
    hint="argmax without an axis gives one number for the whole batch. Every row chooses its own "
    "token: name the axis of the vocabulary.",
)
def chooses_one_for_all(state, context, weights, max_length):
    tokens = torch.full((state.shape[0],), BOS)
    ended, written = torch.zeros_like(tokens, dtype=torch.bool), []
    while len(written) < max_length and not ended.all():
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = logits.argmax().masked_fill(ended, PAD)
        written.append(tokens)
        ended = ended | (tokens == EOS)
    return torch.stack(written, 1)


@alternative("greedy_decode")
def for_loop_with_break(state, context, weights, max_length):
    read = torch.full((len(state),), BOS, device=state.device)
    result = torch.full((len(state), max_length), PAD, device=state.device)
    running = torch.ones_like(read, dtype=torch.bool)
    for step in range(max_length):
        scores, state = decoder_step(read, state, context, weights)
        read = torch.where(running, scores.max(1).indices, PAD)
        result[:, step] = read
        running &= read != EOS
        if not running.any():
            return result[:, : step + 1]
    return result


@alternative("greedy_decode")
def one_sequence_at_a_time(state, context, weights, max_length):
    rows = []
    for h, c in zip(state.split(1), context.split(1), strict=True):
        token, row = torch.tensor([BOS], device=state.device), []
        while len(row) < max_length and token.item() != EOS:
            logits, h = decoder_step(token, h, c, weights)
            token = logits.argmax(1)
            row.append(token.item())
        rows.append(row)
    longest = max(map(len, rows))
    padded = [row + [PAD] * (longest - len(row)) for row in rows]
    return torch.tensor(padded, device=state.device)


@careless("greedy_decode")
def begins_and_ends_on_the_cpu(state, context, weights, max_length):
    return _decode(state, context, weights, max_length)


@careless("greedy_decode")
def writes_into_a_table(state, context, weights, max_length):
    read = torch.full((len(state),), BOS, device=state.device)
    ended, table = read == EOS, torch.full((len(state), max_length), PAD)
    for step in range(max_length):
        scores, state = decoder_step(read, state, context, weights)
        read = scores.argmax(1).masked_fill(ended, PAD)
        table[:, step] = read
        ended = ended | (read == EOS)
        if ended.all():
            break
    return table[:, : step + 1]


def _counts(target):
    """How many tokens each row has."""
    return (target != PAD).sum(1)


def _equally_hard(logits, target):
    """Whether the true tokens of every row have the same mean loss."""
    losses, true = _losses(logits, target), target != PAD
    means = (losses * true).sum(1) / _counts(target)
    return bool((means - means[0]).abs().max() < 1e-9)


@mistake(
    "break_masked_cross_entropy",
    hint="There is one sequence, so its mean is the mean of the batch.",
    where=lambda logits, target: len(target) == 1,
)
def one_sequence():
    return torch.tensor([[[0.0, 1.0, 2.0, 3.0]] * 3]), torch.tensor([[3, 1, PAD]])


@mistake(
    "break_masked_cross_entropy",
    hint="All sequences have as many tokens. The mean of equally large groups' means is the mean.",
    where=lambda logits, target: len(set(_counts(target).tolist())) == 1,
)
def as_many_tokens():
    logits = torch.arange(24.0).view(2, 3, 4) * torch.tensor([[[1.0]], [[-1.0]]])
    return logits, torch.tensor([[3, 2, PAD], [1, 3, PAD]])


@mistake(
    "break_masked_cross_entropy",
    hint="The sequences differ in length, but on average their tokens are equally hard. Make those "
    "of one sequence easier.",
    where=_equally_hard,
)
def all_equally_hard():
    return torch.zeros(2, 3, 5), torch.tensor([[3, PAD, PAD], [4, 1, 3]])


@alternative("break_masked_cross_entropy")
def an_easy_short_one():
    logits = torch.zeros(2, 4, 5, dtype=torch.float64)
    logits[1, :, 2] = 3.0
    return logits, torch.tensor([[4, 3, 1, 2], [2, PAD, PAD, PAD]])


@alternative("break_masked_cross_entropy")
def a_hard_long_one():
    logits = torch.linspace(-2, 2, 2 * 3 * 4).view(2, 3, 4)
    return logits, torch.tensor([[1, 1, 3], [3, 2, PAD]])


EQUIVALENT = {
    "encode: without `device` in one call of `arange`: rows = "
    "torch.arange(len(lengths))": "an index may be on the CPU",
    "encode: with `states` once where `lengths` belongs: rows = "
    "torch.arange(len(states), device=states.device)": "as many of either",
    "encode: with `lengths` once where `states` belongs: rows = "
    "torch.arange(len(lengths), device=lengths.device)": "all are on one device",
    "reverse_source: with one call of `tolist` left out: for row, length in "
    "enumerate(lengths): turned[row, :length] = source[row, "
    ":length].flip(0)": "it counts as an index, too",
    "shift_right: whose result is cut off from the gradient: return "
    "torch.cat([begin, target[:, :-1]], dim=1).detach()": "whole numbers have no gradient",
    "masked_cross_entropy: with another axis in one place: log_p = "
    "torch.log_softmax(logits, dim=-1)": "the last axis is the same one",
    "masked_cross_entropy: with one call of `squeeze` left out: losses = "
    "-log_p.gather(2, target.unsqueeze(2))": "the mask picks the same numbers",
    "masked_cross_entropy: with one whole number off by one: losses = "
    "-log_p.gather(2, target.unsqueeze(2)).squeeze(1)": "the mask picks the same numbers",
    "greedy_decode: whose result is cut off from the gradient: return "
    "torch.stack(written, dim=1).detach()": "whole numbers have no gradient",
}
