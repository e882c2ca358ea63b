"""Wrong and right answers to the exercises of lesson 15."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import causal_mask, masked_attention
from attention.tokens_and_positions import embed, sinusoidal_positions
from attention.transformer import Encoder
from autograder.checking.toolbox.registry import again, alternative, careless, mistake

PAD, BOS, EOS, SEP = 0, 1, 2, 3


def _joined(texts, summaries, row, first, last=len, pad=PAD, left=False):
    """Rows made by `row`; `first` and `last` say where what counts begins and ends."""
    rows = [row(t, s) for t, s in zip(texts, summaries, strict=True)]
    T = max(map(len, rows))
    tokens, marks = [], []
    for text, made in zip(texts, rows, strict=True):
        begin, end = first(text), last(made)
        mark = [begin <= place < end for place in range(len(made))]
        rest = T - len(made)
        fill, none = [pad] * rest, [False] * rest
        tokens.append(fill + made if left else made + fill)
        marks.append(none + mark if left else mark + none)
    return torch.tensor(tokens), torch.tensor(marks)


def _whole(text, summary):
    return [*text, SEP, *summary, EOS]


@mistake(
    "join_text_and_summary",
    hint="EOS is missing after the summary: the model would never learn to stop.",
)
def forgets_eos(texts, summaries):
    return _joined(texts, summaries, lambda t, s: [*t, SEP, *s], lambda t: len(t) + 1)


@mistake(
    "join_text_and_summary",
    hint="SEP is missing between the text and its summary: nothing says where to begin.",
)
def forgets_sep(texts, summaries):
    return _joined(texts, summaries, lambda t, s: [*t, *s, EOS], len)


@mistake(
    "join_text_and_summary",
    hint="SEP is counted. It comes with the question; what is to be learned begins after it.",
)
def counts_sep(texts, summaries):
    return _joined(texts, summaries, _whole, len)


@mistake(
    "join_text_and_summary",
    hint="EOS is not counted. It is to be learned, too: when to stop.",
)
def does_not_count_eos(texts, summaries):
    return _joined(texts, summaries, _whole, lambda t: len(t) + 1, lambda row: len(row) - 1)


@mistake(
    "join_text_and_summary",
    hint="The first token of the summary is not counted. It stands right after SEP.",
)
def misses_the_first(texts, summaries):
    return _joined(texts, summaries, _whole, lambda t: len(t) + 2)


@mistake("join_text_and_summary", hint="The text is counted, too. Only the summary and EOS are.")
def counts_everything(texts, summaries):
    return _joined(texts, summaries, _whole, lambda t: 0)


@mistake(
    "join_text_and_summary",
    hint="This counts the padding after EOS, too.",
)
def counts_the_padding(texts, summaries):
    tokens, _ = _joined(texts, summaries, _whole, len)
    begin = torch.tensor([len(text) + 1 for text in texts])
    return tokens, torch.arange(tokens.shape[1]) >= begin[:, None]


@mistake(
    "join_text_and_summary",
    hint="The padding stands in front. It belongs to the end of each row.",
)
def pads_on_the_left(texts, summaries):
    return _joined(texts, summaries, _whole, lambda t: len(t) + 1, left=True)


@mistake(
    "join_text_and_summary",
    hint="The rows are filled up with EOS. Behind the first EOS comes PAD.",
)
def fills_with_eos(texts, summaries):
    return _joined(texts, summaries, _whole, lambda t: len(t) + 1, pad=EOS)


@mistake(
    "join_text_and_summary",
    hint="What is counted is the other way round: True at the text, False at the summary.",
)
def counts_the_text(texts, summaries):
    tokens, counted = _joined(texts, summaries, _whole, lambda t: len(t) + 1)
    return tokens, ~counted & (tokens != PAD)


@mistake(
    "join_text_and_summary",
    hint="The summary comes first here. A decoder can only look back: the text comes first.",
)
def summary_first(texts, summaries):
    return _joined(summaries, texts, _whole, lambda s: len(s) + 1)


@mistake(
    "join_text_and_summary",
    hint="EOS stands between the text and its summary. There it is SEP; EOS is the end of all.",
)
def eos_for_sep(texts, summaries):
    return _joined(texts, summaries, lambda t, s: [*t, EOS, *s, EOS], lambda t: len(t) + 1)


@mistake(
    "join_text_and_summary",
    hint="T has room for the longest text and the longest summary together. It is the length of "
    "the longest sequence.",
)
def makes_too_much_room(texts, summaries):
    tokens, counted = _joined(texts, summaries, _whole, lambda t: len(t) + 1)
    T = max(map(len, texts)) + max(map(len, summaries)) + 2
    return tuple(F.pad(one, (0, T - one.shape[1])) for one in (tokens, counted))


@mistake(
    "join_text_and_summary",
    hint="What counts begins at the same place in every row. Each text ends at a place of its own.",
)
def draws_one_border(texts, summaries):
    begin = max(map(len, texts)) + 1
    return _joined(texts, summaries, _whole, lambda t: begin)


@alternative("join_text_and_summary")
def finds_the_separator(texts, summaries):
    rows = [_whole(text, summary) for text, summary in zip(texts, summaries, strict=True)]
    T = max(map(len, rows))
    tokens = torch.tensor([row + [PAD] * (T - len(row)) for row in rows])
    behind = (tokens == SEP).cumsum(dim=1) - (tokens == SEP).long()
    return tokens, (behind > 0) & (tokens != PAD)


@alternative("join_text_and_summary")
def pads_with_pytorch(texts, summaries):
    rows = [torch.tensor([*t, SEP, *s, EOS]) for t, s in zip(texts, summaries, strict=True)]
    marks = [torch.arange(len(row)) > len(text) for row, text in zip(rows, texts, strict=True)]
    pad = nn.utils.rnn.pad_sequence
    return [pad(rows, batch_first=True), pad(marks, batch_first=True, padding_value=False)]


@alternative("join_text_and_summary")
def compares_places(texts, summaries):
    T = max(len(t) + len(s) for t, s in zip(texts, summaries, strict=True)) + 2
    tokens = torch.zeros(len(texts), T, dtype=torch.long)
    for row, text, summary in zip(tokens, texts, summaries, strict=True):
        for place, token in enumerate(list(text) + [SEP] + list(summary) + [EOS]):
            row[place] = token
    begin = torch.tensor([len(text) for text in texts]).unsqueeze(1)
    end = begin + torch.tensor([len(summary) for summary in summaries]).unsqueeze(1) + 1
    places = torch.arange(T)
    return tokens, (places > begin) & (places <= end)


@careless("join_text_and_summary")
def makes_the_texts_longer(texts, summaries):
    marks = []
    for text, summary in zip(texts, summaries, strict=True):
        marks.append(torch.arange(len(text) + len(summary) + 2) > len(text))
        text += [SEP, *summary, EOS]
    rows = [torch.tensor(text) for text in texts]
    return [nn.utils.rnn.pad_sequence(one, batch_first=True) for one in (rows, marks)]


@careless("join_text_and_summary")
def ends_the_given_summaries(texts, summaries):
    for summary in summaries:
        summary.append(EOS)
    return _joined(texts, summaries, lambda t, s: [*t, SEP, *s], lambda t: len(t) + 1)


def _loss(logits, tokens, counted=None, shift=1, use=True, pad=True, mean=None, where=None):
    """The loss, with steps that can be left out."""
    T = tokens.shape[1]
    logits, target = logits[:, : T - shift], tokens[:, shift:]
    counts = target != PAD if pad else torch.ones_like(target, dtype=torch.bool)
    if counted is not None and use:
        counts = counts & (counted[:, shift:] if where is None else where(counted))
    loss = -logits.log_softmax(-1).gather(2, target[:, :, None])[:, :, 0]
    loss = torch.where(counts, loss, 0.0)
    if mean is not None:
        return mean(loss, counts)
    return loss.sum() / counts.sum().clamp(min=1)


@mistake(
    "language_model_loss",
    hint="The tokens are not shifted: at each position the model is asked for the very token that "
    "it has just read. The scores at position t are for the token at t + 1.",
)
def does_not_shift(logits, tokens, counted=None):
    return _loss(logits, tokens, counted, shift=0)


@mistake(
    "language_model_loss",
    hint="The shift goes the wrong way: the scores at t are compared with the token before t.",
)
def shifts_backwards(logits, tokens, counted=None):
    return _loss(logits.flip(1), tokens.flip(1), None if counted is None else counted.flip(1))


@mistake(
    "language_model_loss",
    hint="Padding counts. What a model says after the end of a text does not matter.",
)
def counts_padding(logits, tokens, counted=None):
    return _loss(logits, tokens, counted, pad=False)


@mistake("language_model_loss", hint="`counted` is not used.")
def ignores_counted(logits, tokens, counted=None):
    return _loss(logits, tokens, counted, use=False)


@mistake(
    "language_model_loss",
    hint="`counted` is not shifted. It belongs to the tokens that are to be predicted: shift it "
    "as they are.",
)
def does_not_shift_counted(logits, tokens, counted=None):
    return _loss(logits, tokens, counted, where=lambda counted: counted[:, :-1])


@mistake(
    "language_model_loss",
    hint="Where `counted` is given, padding is forgotten. Both must hold.",
)
def counted_instead_of_padding(logits, tokens, counted=None):
    return _loss(logits, tokens, counted, pad=counted is None)


@mistake(
    "language_model_loss",
    hint="The mean is taken over all positions, those that do not count as zeros. Divide by how "
    "many count.",
)
def divides_by_all(logits, tokens, counted=None):
    return _loss(
        logits, tokens, counted, mean=lambda loss, counts: loss.sum() / max(1, loss.numel())
    )


@mistake(
    "language_model_loss",
    hint="The sum is divided by the number of all tokens that are no padding. Divide by how many "
    "count.",
)
def divides_by_all_words(logits, tokens, counted=None):
    words = max(1, int((tokens[:, 1:] != PAD).sum()))
    return _loss(logits, tokens, counted, mean=lambda loss, counts: loss.sum() / words)


@mistake(
    "language_model_loss",
    hint="The first token is among those by which the sum is divided. Nothing predicts it.",
)
def divides_by_the_first_token_too(logits, tokens, counted=None):
    keep = tokens != PAD if counted is None else (tokens != PAD) & counted
    number = max(1, int(keep.sum()))
    return _loss(logits, tokens, counted, mean=lambda loss, counts: loss.sum() / number)


@mistake(
    "language_model_loss",
    hint="The sum is divided by one more than how many count. Against dividing by 0, let the "
    "number be at least 1.",
)
def divides_by_one_more(logits, tokens, counted=None):
    return _loss(logits, tokens, counted, mean=lambda loss, n: loss.sum() / (n.sum() + 1))


@mistake(
    "language_model_loss",
    hint="The losses are added up, not averaged.",
)
def only_sums(logits, tokens, counted=None):
    return _loss(logits, tokens, counted, mean=lambda loss, counts: loss.sum())


@mistake(
    "language_model_loss",
    hint="This is a mean of the sequences' means. One mean over all tokens that count.",
)
def averages_sequences(logits, tokens, counted=None):
    keep = (tokens != PAD) & (True if counted is None else counted)
    means = []
    for scores, ids, those in zip(logits, tokens, keep, strict=True):
        there = those[1:]  # of one sequence: which of its tokens are predicted and count
        if there.any():
            means.append(F.cross_entropy(scores[:-1][there], ids[1:][there]))
    return torch.stack(means).mean() if means else 0 * logits.sum()


@mistake(
    "language_model_loss",
    hint="If nothing counts, 0 is divided by 0, which is NaN. Then the loss is 0.",
)
def divides_by_zero(logits, tokens, counted=None):
    return _loss(logits, tokens, counted, mean=lambda loss, counts: loss.sum() / counts.sum())


@mistake("language_model_loss", hint="The sign is missing: a loss is never negative.")
def forgets_the_sign(logits, tokens, counted=None):
    return -_loss(logits, tokens, counted)


@mistake(
    "language_model_loss",
    hint="This is the mean log-probability in bits. The text asks for nats: the natural logarithm.",
)
def counts_bits(logits, tokens, counted=None):
    return _loss(logits, tokens, counted) / math.log(2)


NOT_SHIFTED = (
    "The tokens are not shifted against the scores: both are cut at the same end. The scores at "
    "position t are for the token at t + 1."
)


@mistake("language_model_loss", hint=NOT_SHIFTED)
def cuts_both_at_the_end(logits, tokens, counted=None):
    counted = None if counted is None else counted[:, :-1]
    return _loss(logits[:, :-1], tokens[:, :-1], counted, shift=0)


@mistake("language_model_loss", hint=NOT_SHIFTED)
def cuts_both_at_the_beginning(logits, tokens, counted=None):
    counted = None if counted is None else counted[:, 1:]
    return _loss(logits[:, 1:], tokens[:, 1:], counted, shift=0)


@mistake(
    "language_model_loss",
    hint="The tokens are shifted by two. The scores at position t are for the token at t + 1.",
)
def shifts_by_two(logits, tokens, counted=None):
    return _loss(logits[:, :-1], tokens[:, 1:], None if counted is None else counted[:, 1:])


@mistake(
    "language_model_loss",
    hint="The second token is never asked for. Only the first one is not predicted by anything.",
)
def forgets_the_second_token(logits, tokens, counted=None):
    return _loss(logits[:, 1:], tokens[:, 1:], None if counted is None else counted[:, 1:])


@mistake(
    "language_model_loss",
    hint="The tokens are rolled in a circle: after the last token the first one is asked for. "
    "Drop that position.",
)
def rolls_in_a_circle(logits, tokens, counted=None):
    counted = None if counted is None else counted.roll(-1, 1)
    return _loss(logits, tokens.roll(-1, 1), counted, shift=0)


@mistake(
    "language_model_loss",
    hint="The batch is flattened before it is shifted: after the last token of a sequence, the "
    "first one of the next sequence is asked for.",
)
def shifts_across_sequences(logits, tokens, counted=None):
    counted = None if counted is None else counted.reshape(1, -1)
    return _loss(logits.flatten(0, 1)[None], tokens.reshape(1, -1), counted)


@mistake(
    "language_model_loss",
    hint="Padding is looked for among the tokens that are read. It is the token to be predicted "
    "that must not be PAD.",
)
def looks_for_padding_among_the_read(logits, tokens, counted=None):
    keep = tokens[:, :-1] != PAD if counted is None else (tokens[:, :-1] != PAD) & counted[:, 1:]
    return _loss(logits, tokens, keep, pad=False, where=lambda keep: keep)


@mistake(
    "language_model_loss",
    hint="Whether a token counts is looked up at the token that is read. It depends on the token "
    "to be predicted: its PAD, and its `counted`.",
)
def looks_at_what_is_read(logits, tokens, counted=None):
    keep = tokens != PAD if counted is None else (tokens != PAD) & counted
    return _loss(logits, tokens, keep[:, :-1], pad=False, where=lambda keep: keep)


@mistake(
    "language_model_loss",
    hint="The mean is taken over all positions, those that do not count as zeros. Divide by how "
    "many count.",
)
def takes_the_mean_of_all(logits, tokens, counted=None):
    return _loss(logits, tokens, counted, mean=lambda loss, counts: loss.mean())


@mistake(
    "language_model_loss",
    hint="The sum is divided by the number of all tokens but PAD, the first ones among them. "
    "Divide by how many count.",
)
def divides_by_all_but_padding(logits, tokens, counted=None):
    words = max(1, int((tokens != PAD).sum()))
    return _loss(logits, tokens, counted, mean=lambda loss, counts: loss.sum() / words)


@mistake(
    "language_model_loss",
    hint="The sum is divided by B · T. Divide by how many tokens count.",
)
def divides_by_the_size_of_the_batch(logits, tokens, counted=None):
    return _loss(logits, tokens, counted, mean=lambda loss, _: loss.sum() / tokens.numel())


@mistake(
    "language_model_loss",
    hint="The sum is divided by the number of sequences. Divide by how many tokens count.",
)
def divides_by_the_sequences(logits, tokens, counted=None):
    return _loss(logits, tokens, counted, mean=lambda loss, _: loss.sum() / len(tokens))


@mistake(
    "language_model_loss",
    hint="With `counted`, PAD is among those by which the sum is divided. It never counts.",
)
def divides_by_counted_padding(logits, tokens, counted=None):
    def mean(loss, counts):
        counts = counts if counted is None else counted[:, 1:]
        return loss.sum() / counts.sum().clamp(min=1)

    return _loss(logits, tokens, counted, mean=mean)


@mistake(
    "language_model_loss",
    hint="`counted` is read the other way around: True means that the token counts.",
)
def inverts_counted(logits, tokens, counted=None):
    return _loss(logits, tokens, None if counted is None else ~counted)


@mistake(
    "language_model_loss",
    hint="It is PAD that counts here, and nothing else: the condition is the wrong way around.",
)
def counts_only_padding(logits, tokens, counted=None):
    keep = (tokens == PAD) if counted is None else (tokens == PAD) & counted
    return _loss(logits, tokens, keep, pad=False)


@mistake(
    "language_model_loss",
    hint="Every position counts: neither PAD nor `counted` is looked at. And where there is "
    "nothing to predict, 0 is divided by 0.",
)
def counts_every_position(logits, tokens, counted=None):
    return _loss(logits, tokens, None, pad=False, mean=lambda loss, counts: loss.mean())


@mistake(
    "language_model_loss",
    hint="One loss comes back for each position. Average those that count.",
)
def returns_every_loss(logits, tokens, counted=None):
    return _loss(logits, tokens, counted, mean=lambda loss, counts: loss)


@mistake(
    "language_model_loss",
    hint="One mean comes back for each sequence. One is asked for, over all tokens that count.",
)
def returns_a_mean_per_sequence(logits, tokens, counted=None):
    return _loss(logits, tokens, counted, mean=_mean_per_sequence)


def _mean_per_sequence(loss, counts):
    return loss.sum(1) / counts.sum(1).clamp(min=1)


@mistake(
    "language_model_loss",
    hint="This is a mean of the sequences' means, and a sequence without any token that counts is "
    "among them, with 0. One mean over all tokens that count.",
)
def averages_all_sequences(logits, tokens, counted=None):
    return _loss(logits, tokens, counted, mean=lambda *both: _mean_per_sequence(*both).mean())


@mistake(
    "language_model_loss",
    hint="softmax is taken twice: what goes into log_softmax, or into F.cross_entropy, are scores, "
    "not probabilities.",
)
def takes_softmax_of_probabilities(logits, tokens, counted=None):
    return _loss(logits.softmax(-1), tokens, counted)


LOG_OF_ZERO = (
    "A softmax and its logarithm are taken one after the other: in float32 a small probability "
    "becomes 0, and its logarithm -inf. log_softmax does both at once."
)


def _unlikely(logits, tokens, counted, keep):
    counts = tokens[:, 1:] != PAD if counted is None else (tokens[:, 1:] != PAD) & counted[:, 1:]
    log_p = logits[:, :-1].softmax(-1).log()
    loss = -log_p.gather(2, tokens[:, 1:, None]).squeeze(2)
    return keep(loss, counts).sum() / counts.sum().clamp(min=1)


@mistake("language_model_loss", hint=LOG_OF_ZERO)
def takes_the_log_of_zero(logits, tokens, counted=None):
    return _unlikely(logits, tokens, counted, lambda loss, counts: loss.masked_fill(~counts, 0.0))


@mistake("language_model_loss", hint=LOG_OF_ZERO)
def multiplies_the_log_of_zero(logits, tokens, counted=None):
    return _unlikely(logits, tokens, counted, lambda loss, counts: loss * counts)


@mistake(
    "language_model_loss",
    hint="The scores are reshaped to (B, vocab_size, T - 1), which mixes positions with ids. "
    "F.cross_entropy wants these axes exchanged: transpose, or flatten both tensors.",
)
def reshapes_for_cross_entropy(logits, tokens, counted=None):
    target = tokens[:, 1:]
    counts = target != PAD if counted is None else (target != PAD) & counted[:, 1:]
    B, T, V = logits[:, :-1].shape
    loss = F.cross_entropy(logits[:, :-1].reshape(B, V, T), target, reduction="none")
    return (loss * counts).sum() / counts.sum().clamp(min=1)


def _times_a_mask(known):
    """The same mistake, where a token that does not count has a score of -inf: 0 times that."""

    def answer(logits, tokens, counted=None):
        keep = tokens != PAD if counted is None else (tokens != PAD) & counted
        log_p = logits[:, :-1].gather(2, tokens[:, 1:, None])[..., 0]
        return known.target(logits, tokens, counted) + 0 * log_p[~keep[:, 1:]].sum()

    answer.__name__ = f"{known.name}_times_a_mask"
    return answer


# Learners leave tokens out in one way or the other, whatever else is wrong.
again("language_model_loss", _times_a_mask)


@mistake(
    "language_model_loss",
    hint="A token that does not count may have an infinite loss, and 0 times infinity is NaN. Put "
    "zeros there, with masked_fill or torch.where, instead of multiplying by them.",
)
def multiplies_by_zeros(logits, tokens, counted=None):
    counts = tokens[:, 1:] != PAD if counted is None else (tokens[:, 1:] != PAD) & counted[:, 1:]
    loss = -logits[:, :-1].log_softmax(-1).gather(2, tokens[:, 1:, None])[..., 0]
    return (loss * counts).sum() / counts.sum().clamp(min=1)


@alternative("language_model_loss")
def lets_pytorch_do_it(logits, tokens, counted=None):
    target = tokens[:, 1:]
    if counted is not None:
        target = torch.where(counted[:, 1:], target, PAD)
    logits = logits[:, :-1].flatten(0, 1)
    total = F.cross_entropy(logits, target.flatten(), ignore_index=PAD, reduction="sum")
    return total / max(1, int((target != PAD).sum()))


@alternative("language_model_loss")
def picks_one_by_one(logits, tokens, counted=None):
    losses = []
    for b in range(tokens.shape[0]):
        for t in range(tokens.shape[1] - 1):
            token = tokens[b, t + 1].item()
            if token != PAD and (counted is None or counted[b, t + 1].item()):
                losses.append(torch.logsumexp(logits[b, t], 0) - logits[b, t, token])
    return sum(losses) / len(losses) if losses else 0 * logits.sum()


@alternative("language_model_loss")
def selects_with_a_mask(logits, tokens, counted=None):
    keep = tokens[:, 1:].ne(0)
    if counted is not None:
        keep = keep.logical_and(counted[:, 1:])
    if not keep.any():
        return logits.new_zeros(())
    return F.cross_entropy(logits[:, :-1][keep], tokens[:, 1:][keep])


@careless("language_model_loss")
def computes_in_float32(logits, tokens, counted=None):
    return _loss(logits.float(), tokens, counted)


@careless("language_model_loss")
def fills_losses_in_on_the_cpu(logits, tokens, counted=None):
    B, T = tokens.shape
    losses, n = torch.zeros(B, T), 0
    for b in range(B):
        for t in range(1, T):
            if tokens[b, t] != PAD and (counted is None or counted[b, t]):
                losses[b, t] = -logits[b, t - 1].log_softmax(0)[tokens[b, t]]
                n += 1
    return losses.sum() / max(n, 1)


class _Decoder(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, dropout=0.1):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.stack = Encoder(n_layers, d_model, n_heads, d_ff, dropout)
        self.generator = nn.Linear(d_model, vocab_size, bias=False)

    def rows(self, tokens):
        return embed(tokens, self.embedding.weight)

    def places(self, x):
        return sinusoidal_positions(torch.arange(x.shape[1]).to(x), x.shape[2])

    def mask(self, tokens):
        return causal_mask(tokens.shape[1], tokens.device)

    def forward(self, tokens):
        x = self.rows(tokens)
        return self.generator(self.stack(x + self.places(x), self.mask(tokens)))


@mistake(
    "DecoderOnly",
    hint="The layers get no mask: every position sees the token that it should predict.",
)
class ForgetsTheMask(_Decoder):
    def mask(self, tokens):
        return None


@mistake(
    "DecoderOnly",
    hint="The mask is the wrong way round: True is what may be seen, the past and oneself.",
)
class SeesTheFuture(_Decoder):
    def mask(self, tokens):
        return super().mask(tokens).T


@mistake(
    "DecoderOnly",
    hint="A position does not see itself. It has read its own token; only what comes after it is "
    "hidden.",
)
class DoesNotSeeItself(_Decoder):
    def mask(self, tokens):
        return super().mask(tokens).tril(-1)


SHIFTS_INSIDE = (
    "The tokens are shifted inside the model: position t has read the tokens before t, and not "
    "token t itself. It reads them as they are; `language_model_loss` does the shifting."
)


@mistake("DecoderOnly", hint=SHIFTS_INSIDE)
class ShiftsWhatItReads(_Decoder):
    first = BOS

    def forward(self, tokens):
        first = torch.full_like(tokens[:, :1], self.first)
        return super().forward(torch.cat([first, tokens[:, :-1]], 1))


@mistake("DecoderOnly", hint=SHIFTS_INSIDE)
class ShiftsByPadding(ShiftsWhatItReads):
    first = PAD


@mistake(
    "DecoderOnly",
    hint="There are scores for T - 1 positions. After the last token, too, the model says what "
    "follows; it is the loss that leaves it out.",
)
class LeavesTheLastOut(_Decoder):
    def forward(self, tokens):
        return super().forward(tokens[:, :-1])


@mistake("DecoderOnly", hint="The positions are missing: the order of the past would be lost.")
class ForgetsThePositions(_Decoder):
    def places(self, x):
        return 0.0


@mistake("DecoderOnly", hint="The positions count from 1. They count from 0.")
class CountsFromOne(_Decoder):
    def places(self, x):
        return sinusoidal_positions(torch.arange(1, x.shape[1] + 1).to(x), x.shape[2])


@mistake(
    "DecoderOnly",
    hint="The rows of the table are not scaled: √d_model is missing. `embed` of lesson 08 does it.",
)
class ForgetsTheScale(_Decoder):
    def rows(self, tokens):
        return self.embedding(tokens)


@mistake(
    "DecoderOnly",
    hint="The rows of the table are scaled twice: `embed` does it already.",
)
class ScalesTwice(_Decoder):
    def rows(self, tokens):
        return super().rows(tokens) * math.sqrt(self.embedding.embedding_dim)


@mistake(
    "DecoderOnly",
    hint="These are vectors of d_model numbers. The generator makes scores of them.",
)
class ForgetsTheGenerator(_Decoder):
    def forward(self, tokens):
        x = self.rows(tokens)
        return self.stack(x + self.places(x), self.mask(tokens))


@mistake("DecoderOnly", hint="The mask is inverted: only what comes later may be seen.")
class InvertsTheMask(_Decoder):
    def mask(self, tokens):
        return ~super().mask(tokens)


@mistake(
    "DecoderOnly",
    hint="The positions are scaled, too. √d_model belongs to the rows of the table alone.",
)
class ScalesTheSum(_Decoder):
    def forward(self, tokens):
        x = self.embedding(tokens)
        x = (x + self.places(x)) * math.sqrt(x.shape[2])
        return self.generator(self.stack(x, self.mask(tokens)))


@mistake(
    "DecoderOnly",
    hint="The rows of the table are divided by √d_model. They are multiplied with it.",
)
class DividesByTheScale(_Decoder):
    def rows(self, tokens):
        return self.embedding(tokens) / math.sqrt(self.embedding.embedding_dim)


@mistake(
    "DecoderOnly",
    hint="The table of the embedding makes the scores. The generator has weights of its own.",
)
class TiesTheTables(_Decoder):
    def forward(self, tokens):
        x = self.rows(tokens)
        return self.stack(x + self.places(x), self.mask(tokens)) @ self.embedding.weight.T


@mistake(
    "DecoderOnly",
    hint="The positions are numbers of the rows of the batch. They count along the sequence.",
)
class CountsTheBatch(_Decoder):
    def places(self, x):
        return sinusoidal_positions(torch.arange(x.shape[0]).to(x), x.shape[2])[:, None]


@mistake(
    "DecoderOnly",
    hint="These are log-probabilities. The loss takes the softmax itself: give back the scores.",
)
class EndsWithLogSoftmax(_Decoder):
    def forward(self, tokens):
        return super().forward(tokens).log_softmax(-1)


@mistake("DecoderOnly", hint="These are probabilities. The loss wants scores, before the softmax.")
class EndsWithSoftmax(_Decoder):
    def forward(self, tokens):
        return super().forward(tokens).softmax(-1)


@mistake(
    "DecoderOnly",
    hint="The last norm of the stack is skipped: call the stack, not its layers one by one.",
)
class SkipsTheLastNorm(_Decoder):
    def forward(self, tokens):
        x = self.rows(tokens)
        x = x + self.places(x)
        for layer in self.stack.layers:
            x = layer(x, self.mask(tokens))
        return self.generator(x)


@alternative("DecoderOnly")
class WritesItOut(_Decoder):
    def forward(self, tokens):
        table = self.embedding.weight
        T, d_model = tokens.shape[1], table.shape[1]
        x = F.embedding(tokens, table) * d_model**0.5
        t = torch.arange(T, device=x.device, dtype=x.dtype)[:, None]
        angles = t / 10000 ** (
            torch.arange(0, d_model, 2, device=x.device, dtype=x.dtype) / d_model
        )
        x = x + torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)
        mask = t >= t.T
        for layer in self.stack.layers:
            x = layer(x, mask)
        return self.stack.norm(x) @ self.generator.weight.T


@alternative("DecoderOnly")
class CountsInFloat32(_Decoder):
    def places(self, x):
        positions = torch.arange(float(x.shape[1]), device=x.device)
        return sinusoidal_positions(positions, x.shape[2])


@alternative("DecoderOnly")
class MasksEachRow(_Decoder):
    def mask(self, tokens):
        B, T = tokens.shape
        future = torch.ones(B, T, T, device=tokens.device).triu(1)
        return future == 0


@careless("DecoderOnly")
class CountsOnTheCpu(_Decoder):
    def places(self, x):
        return sinusoidal_positions(torch.arange(float(x.shape[1])), x.shape[2])


@careless("DecoderOnly")
class MasksOnTheCpu(_Decoder):
    def mask(self, tokens):
        T = tokens.shape[1]
        return torch.ones(T, T, dtype=torch.bool).tril()


def _blocks(q, k, v, block, mask=None, pad=None):
    T = q.shape[-2]
    if pad is None:
        q, k, v = (F.pad(x, (0, 0, 0, -T % block)) for x in (q, k, v))
    q, k, v = (x.unflatten(-2, (-1, block)) for x in (q, k, v))
    mask = causal_mask(block, q.device) if mask is None else mask(block, q.device)
    return masked_attention(q, k, v, mask).flatten(-3, -2)[..., :T, :]


def _dense(q, k, v, block, sees):
    t = torch.arange(q.shape[-2], device=q.device)
    return masked_attention(q, k, v, sees(t[:, None], t, block))


@mistake(
    "local_block_attention",
    hint="Within a block the future is visible: the mask inside a block is causal.",
)
def sees_the_whole_block(q, k, v, block):
    return _dense(q, k, v, block, lambda t, s, b: t // b == s // b)


@mistake(
    "local_block_attention",
    hint="This is a window that slides: every position sees the `block` positions up to itself. "
    "Here the blocks are fixed, and nobody sees beyond the edge of its own block.",
)
def slides_a_window(q, k, v, block):
    return _dense(q, k, v, block, lambda t, s, b: (s <= t) & (t - s < b))


@mistake(
    "local_block_attention",
    hint="This is causal attention to everything. A position sees only its own block.",
)
def forgets_the_blocks(q, k, v, block):
    return _dense(q, k, v, block, lambda t, s, b: s <= t)


@mistake(
    "local_block_attention",
    hint="The sequence is cut into `block` blocks. `block` is how many positions each of them has.",
)
def cuts_into_block_blocks(q, k, v, block):
    T = q.shape[-2]
    return _blocks(q, k, v, -(-T // block))


@mistake(
    "local_block_attention",
    hint="The block before is visible, too. A position sees only its own block.",
)
def sees_the_block_before(q, k, v, block):
    return _dense(q, k, v, block, lambda t, s, b: (s <= t) & (t // b - s // b <= 1))


@mistake(
    "local_block_attention",
    hint="The positions are dealt out in turns: 0, n, 2n … come together. A block is a run of "
    "neighbours.",
)
def deals_out_in_turns(q, k, v, block):
    n = -(-q.shape[-2] // block)
    return _dense(q, k, v, n, lambda t, s, n: (s <= t) & (t % n == s % n))


@mistake(
    "local_block_attention",
    hint="If block does not divide T, the rest at the end cannot be cut into a block. Fill up "
    "the axis of the positions, and throw away what was added afterwards.",
)
def needs_whole_blocks(q, k, v, block):
    return _blocks(q, k, v, block, pad=False)


@mistake(
    "local_block_attention",
    hint="These are T · T scores, of which most are hidden. For half a million positions they "
    "take a terabyte: compute them block by block.",
)
def hides_most_of_all_scores(q, k, v, block):
    return _dense(q, k, v, block, lambda t, s, b: (s <= t) & (t // b == s // b))


@mistake(
    "local_block_attention",
    hint="A position does not see itself. Within a block it sees what is before it, and itself.",
)
def does_not_see_itself(q, k, v, block):
    return _blocks(q, k, v, block, lambda block, device: causal_mask(block, device).tril(-1))


@mistake("local_block_attention", hint="The scores are not divided by √d_k.")
def forgets_the_scale_in_blocks(q, k, v, block):
    return _blocks(q * math.sqrt(q.shape[-1]), k, v, block)


@mistake(
    "local_block_attention",
    hint="The last, shorter block is left out. Its positions see each other, too.",
)
def leaves_out_the_last_block(q, k, v, block):
    whole = q.shape[-2] // block * block
    context = _blocks(*(x[..., :whole, :] for x in (q, k, v)), block)
    return F.pad(context, (0, 0, 0, q.shape[-2] - whole))


@mistake(
    "local_block_attention",
    hint="In the last, shorter block there is no mask. It is causal as well.",
)
def forgets_the_mask_at_the_end(q, k, v, block):
    whole = q.shape[-2] // block * block
    parts = [x.split([whole, x.shape[-2] - whole], dim=-2) for x in (q, k, v)]
    begin, end = zip(*parts, strict=True)
    return torch.cat([_blocks(*begin, block), masked_attention(*end)], dim=-2)


@mistake(
    "local_block_attention",
    hint="The padding at the end is still there. Return only the first T positions.",
)
def keeps_the_padding(q, k, v, block):
    q, k, v = (F.pad(x, (0, 0, 0, -x.shape[-2] % block)) for x in (q, k, v))
    return _blocks(q, k, v, block)


@mistake(
    "local_block_attention",
    hint="The sequence is filled up in front, so the short block is the first one. The last block "
    "may be shorter.",
)
def fills_up_in_front(q, k, v, block):
    shift = -q.shape[-2] % block
    return _dense(q, k, v, block, lambda t, s, b: (s <= t) & ((t + shift) // b == (s + shift) // b))


FINITE = (
    "What is hidden gets a finite score, not -inf. Where all that may be seen scores lower still, "
    "the weight goes to what is hidden: only -inf is below every score."
)


def _filled(q, k, v, hidden, low):
    """Attention with a finite number for what is hidden; 0 where there is nothing to see."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(hidden, low).softmax(-1)
    return weights.masked_fill(hidden.all(-1, keepdim=True), 0.0) @ v


def _blocks_filled(q, k, v, block, low):
    T, hidden = q.shape[-2], ~causal_mask(block, q.device)
    q, k, v = (F.pad(x, (0, 0, 0, -T % block)).unflatten(-2, (-1, block)) for x in (q, k, v))
    return _filled(q, k, v, hidden, low).flatten(-3, -2)[..., :T, :]


@mistake("local_block_attention", hint=FINITE)
def hides_in_blocks_with_a_hundred(q, k, v, block):
    return _blocks_filled(q, k, v, block, -100.0)


@mistake("local_block_attention", hint=FINITE)
def hides_in_blocks_with_ten_thousand(q, k, v, block):
    return _blocks_filled(q, k, v, block, -1e4)


@alternative("local_block_attention")
def works_block_by_block(q, k, v, block):
    parts = []
    for begin in range(0, q.shape[-2], block):
        mine = slice(begin, begin + block)
        one = q[..., mine, :]
        mask = causal_mask(one.shape[-2], q.device)
        parts.append(masked_attention(one, k[..., mine, :], v[..., mine, :], mask))
    return torch.cat(parts, dim=-2)


@alternative("local_block_attention")
def goes_through_the_places_of_a_block(q, k, v, block):
    T, n = q.shape[-2], -(-q.shape[-2] // block)
    q, k, v = (F.pad(x, (0, 0, 0, n * block - T)) for x in (q, k, v))
    q, k, v = (x.reshape(*x.shape[:-2], n, block, x.shape[-1]) for x in (q, k, v))
    rows = []
    for place in range(block):
        seen = slice(0, place + 1)
        scores = torch.einsum("...d,...sd->...s", q[..., place, :], k[..., seen, :])
        weights = (scores / math.sqrt(q.shape[-1])).softmax(-1)
        rows.append(torch.einsum("...s,...sd->...d", weights, v[..., seen, :]))
    context = torch.stack(rows, dim=-2)
    return context.reshape(*context.shape[:-3], n * block, -1)[..., :T, :]


@careless("local_block_attention")
def masks_the_blocks_on_the_cpu(q, k, v, block):
    return _blocks(q, k, v, block, lambda block, device: causal_mask(block))


@careless("local_block_attention")
def fills_blocks_in_on_the_cpu(q, k, v, block):
    context = torch.zeros(*q.shape[:-1], v.shape[-1])
    for begin in range(0, q.shape[-2], block):
        one, two, three = (x[..., begin : begin + block, :] for x in (q, k, v))
        mask = causal_mask(one.shape[-2], q.device)
        context[..., begin : begin + block, :] = masked_attention(one, two, three, mask)
    return context


def _stretches(x, stride):
    n = x.shape[-2] // stride
    return x[..., : n * stride, :].unflatten(-2, (n, stride))


@mistake(
    "compress",
    hint="The kernel moves by one position. It moves by its own width: every stretch is read once.",
)
def moves_by_one(x, weight):
    stretches = x.unfold(-2, len(weight), 1)  # (..., n, d_in, stride)
    return torch.einsum("...nds,sde->...ne", stretches, weight)


@mistake(
    "compress",
    hint="The kernel is read from its end: weight[0] belongs to the first vector of a stretch.",
)
def flips_the_kernel(x, weight):
    return torch.einsum("...nsd,sde->...ne", _stretches(x, len(weight)), weight.flip(0))


@mistake(
    "compress",
    hint="The sum over the places of a stretch is divided by the stride. A convolution only adds.",
)
def averages(x, weight):
    return torch.einsum("...nsd,sde->...ne", _stretches(x, len(weight)), weight) / len(weight)


@mistake(
    "compress",
    hint="All places of a stretch are multiplied with the first matrix. Each place has its own.",
)
def shares_one_matrix(x, weight):
    return _stretches(x, len(weight)).sum(-2) @ weight[0]


@mistake(
    "compress",
    hint="Only the first vector of each stretch is used. All of them go into the sum.",
)
def picks_the_first(x, weight):
    return _stretches(x, len(weight))[..., 0, :] @ weight[0]


@mistake(
    "compress",
    hint="The rest at the end became a stretch, filled up with zeros. Here it is dropped.",
)
def fills_up_the_rest(x, weight):
    x = F.pad(x, (0, 0, 0, -x.shape[-2] % len(weight)))
    return torch.einsum("...nsd,sde->...ne", _stretches(x, len(weight)), weight)


@mistake(
    "compress",
    hint="A stretch is made of positions that lie n apart. It is a run of neighbours: mind which "
    "of the two new axes comes first.",
)
def deals_out_stretches(x, weight):
    stride, n = len(weight), x.shape[-2] // len(weight)
    stretches = x[..., : n * stride, :].unflatten(-2, (stride, n))
    return torch.einsum("...snd,sde->...ne", stretches, weight)


@mistake(
    "compress",
    hint="Where stride does not divide T, this drops the first vectors. The last ones are dropped.",
)
def drops_the_front(x, weight):
    rest = x.shape[-2] % len(weight)
    return torch.einsum("...nsd,sde->...ne", _stretches(x[..., rest:, :], len(weight)), weight)


@mistake(
    "compress",
    hint="If stride does not divide T, the rest at the end cannot be cut into a stretch. Drop it "
    "first.",
)
def needs_whole_stretches(x, weight):
    return torch.einsum("...nsd,sde->...ne", x.unflatten(-2, (-1, len(weight))), weight)


@mistake(
    "compress",
    hint="The places of a stretch are still there, on an axis of their own. Add them up.",
)
def does_not_add_up(x, weight):
    return torch.einsum("...nsd,sde->...nse", _stretches(x, len(weight)), weight)


@mistake(
    "compress",
    hint="conv1d refuses a sequence that is shorter than its kernel. Then nothing remains: a "
    "result with an axis of size 0.",
)
def convolves_what_is_too_short(x, weight):
    rows = x.reshape(-1, *x.shape[-2:]).mT
    made = F.conv1d(rows, weight.permute(2, 1, 0), stride=len(weight)).mT
    return made.reshape(*x.shape[:-2], *made.shape[1:])


@mistake(
    "compress",
    hint="unfold refuses a sequence that is shorter than a stretch. Then nothing remains: a result "
    "with an axis of size 0.",
)
def unfolds_what_is_too_short(x, weight):
    stretches = x.unfold(-2, len(weight), len(weight))  # (..., n, d_in, stride)
    return torch.einsum("...nds,sde->...ne", stretches, weight)


@mistake(
    "compress",
    hint="A sequence that is shorter than a stretch has none, and nothing cannot be stacked. "
    "Then the result has an axis of size 0.",
)
def stacks_nothing(x, weight):
    stride = len(weight)
    made = [
        torch.einsum("...sd,sde->...e", x[..., n : n + stride, :], weight)
        for n in range(0, x.shape[-2] - stride + 1, stride)
    ]
    return torch.stack(made, dim=-2)


@alternative("compress")
def adds_place_by_place(x, weight):
    stride = weight.shape[0]
    end = x.shape[-2] - x.shape[-2] % stride
    return sum(x[..., s:end:stride, :] @ weight[s] for s in range(stride))


@alternative("compress")
def flattens_the_stretches(x, weight):
    return _stretches(x, len(weight)).flatten(-2) @ weight.flatten(0, 1)


@alternative("compress")
def convolves(x, weight):
    if x.shape[-2] < len(weight):
        return x.new_zeros(*x.shape[:-2], 0, weight.shape[2])
    rows = x.reshape(-1, *x.shape[-2:]).mT
    made = F.conv1d(rows, weight.permute(2, 1, 0), stride=len(weight)).mT
    return made.reshape(*x.shape[:-2], *made.shape[1:])


@careless("compress")
def fills_stretches_in_on_the_cpu(x, weight):
    made = torch.zeros(*x.shape[:-2], x.shape[-2] // len(weight), weight.shape[2])
    for j in range(made.shape[-2]):
        for s in range(len(weight)):
            made[..., j, :] += x[..., j * len(weight) + s, :] @ weight[s]
    return made


@careless("compress")
def multiplies_in_numpy(x, weight):
    flat = _stretches(x, len(weight)).flatten(-2).numpy(), weight.flatten(0, 1).numpy()
    return torch.from_numpy(flat[0] @ flat[1])


def _compressed(q, k, v, stride, sees):
    t = torch.arange(q.shape[-2], device=q.device)[:, None]
    j = torch.arange(k.shape[-2], device=q.device)
    return masked_attention(q, k, v, sees(t, j, stride))


@mistake(
    "memory_compressed_attention",
    hint="A position sees the key of its own stretch before this is over: that key holds tokens of "
    "the future. It is visible from the last position of its stretch on.",
)
def sees_the_own_stretch(q, k, v, stride):
    return _compressed(q, k, v, stride, lambda t, j, s: j * s <= t)


@mistake(
    "memory_compressed_attention",
    hint="The last position of a stretch does not see the key of this stretch, though nothing in "
    "that comes later.",
)
def waits_too_long(q, k, v, stride):
    return _compressed(q, k, v, stride, lambda t, j, s: j < t // s)


@mistake(
    "memory_compressed_attention",
    hint="Positions are compared with the numbers of the keys: j <= t. Key j stands for `stride` "
    "positions, the last of which is j · stride + stride - 1.",
)
def compares_unlike_numbers(q, k, v, stride):
    return _compressed(q, k, v, stride, lambda t, j, s: j <= t)


@mistake(
    "memory_compressed_attention",
    hint="There is no mask: everybody sees the future, in a compressed form.",
)
def forgets_the_future(q, k, v, stride):
    return masked_attention(q, k, v)


@mistake(
    "memory_compressed_attention",
    hint="The mask is the wrong way round: what is over may be seen.",
)
def inverts_the_mask(q, k, v, stride):
    return _compressed(q, k, v, stride, lambda t, j, s: j * s + s - 1 > t)


@mistake(
    "memory_compressed_attention",
    hint="Where there is nothing to see, the softmax of nothing is NaN. There it should be 0.",
)
def lets_nan_through(q, k, v, stride):
    t = torch.arange(q.shape[-2], device=q.device)[:, None]
    hidden = torch.arange(k.shape[-2], device=q.device) * stride + stride - 1 > t
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(hidden, -math.inf).softmax(-1) @ v


@mistake(
    "memory_compressed_attention",
    hint="Where there is nothing to see, hidden keys share the weight evenly: -1e9 everywhere is a "
    "tie, and so is any other number. There it should be 0.",
)
def ties_where_nothing_is_seen(q, k, v, stride):
    t = torch.arange(q.shape[-2], device=q.device)[:, None]
    hidden = torch.arange(k.shape[-2], device=q.device) * stride + stride - 1 > t
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(hidden, -1e9).softmax(-1) @ v


def _past_filled(q, k, v, stride, low):
    t = torch.arange(q.shape[-2], device=q.device)[:, None]
    hidden = torch.arange(k.shape[-2], device=q.device) * stride + stride - 1 > t
    return _filled(q, k, v, hidden, low)


@mistake("memory_compressed_attention", hint=FINITE)
def hides_the_future_with_a_hundred(q, k, v, stride):
    return _past_filled(q, k, v, stride, -100.0)


@mistake("memory_compressed_attention", hint=FINITE)
def hides_the_future_with_ten_thousand(q, k, v, stride):
    return _past_filled(q, k, v, stride, -1e4)


@mistake(
    "memory_compressed_attention",
    hint="The first key is always visible, also before its stretch is over. Then there is nothing "
    "to see, and the result is 0.",
)
def shows_the_first_key(q, k, v, stride):
    return _compressed(q, k, v, stride, lambda t, j, s: (j * s + s - 1 <= t) | (j == 0))


@mistake("memory_compressed_attention", hint="The scores are not divided by √d_k.")
def forgets_the_scale_of_the_keys(q, k, v, stride):
    scale = math.sqrt(q.shape[-1])
    return _compressed(q * scale, k, v, stride, lambda t, j, s: j * s + s - 1 <= t)


@mistake(
    "memory_compressed_attention",
    hint="The scores are divided by √d_v. It is the length of keys and queries that makes them "
    "large: √d_k.",
)
def scales_by_the_values(q, k, v, stride):
    scale = math.sqrt(q.shape[-1] / v.shape[-1])
    return _compressed(q * scale, k, v, stride, lambda t, j, s: j * s + s - 1 <= t)


@mistake(
    "memory_compressed_attention",
    hint="Only the latest stretch that is over is visible. All earlier ones are, too.",
)
def sees_the_latest_only(q, k, v, stride):
    return _compressed(q, k, v, stride, lambda t, j, s: j == (t + 1) // s - 1)


@alternative("memory_compressed_attention")
def counts_whole_stretches(q, k, v, stride):
    return _compressed(q, k, v, stride, lambda t, j, s: j < (t + 1).div(s, rounding_mode="floor"))


@alternative("memory_compressed_attention")
def goes_from_stretch_to_stretch(q, k, v, stride):
    T, rows = q.shape[-2], []
    for t in range(T):
        n = (t + 1) // stride
        weights = (q[..., t : t + 1, :] @ k[..., :n, :].mT / q.shape[-1] ** 0.5).softmax(-1)
        rows.append(weights @ v[..., :n, :])  # without keys, a sum of nothing
    return torch.cat(rows, dim=-2)


@alternative("memory_compressed_attention")
def thins_a_causal_mask(q, k, v, stride):
    mask = causal_mask(q.shape[-2], q.device)[:, stride - 1 :: stride]
    return masked_attention(q, k, v, mask[:, : k.shape[-2]])


@careless("memory_compressed_attention")
def compares_on_the_cpu(q, k, v, stride):
    t, j = torch.arange(q.shape[-2])[:, None], torch.arange(k.shape[-2])
    return masked_attention(q, k, v, j * stride + stride - 1 <= t)


@careless("memory_compressed_attention")
def fills_positions_in_on_the_cpu(q, k, v, stride):
    context = torch.zeros(*q.shape[:-1], v.shape[-1])
    for t in range(stride - 1, q.shape[-2]):
        n = (t + 1) // stride
        seen = masked_attention(q[..., t : t + 1, :], k[..., :n, :], v[..., :n, :])
        context[..., t, :] = seen[..., 0, :]
    return context


def _gate(scores, k, weigh):
    best, chosen = scores.topk(k, dim=-1)
    return torch.zeros_like(scores).scatter(-1, chosen, weigh(best, chosen))


@mistake(
    "top_k_gate",
    hint="The softmax runs over all experts before the best are kept, so the gates of a token do "
    "not add up to 1. Take it over the k best scores.",
)
def softmax_first(scores, k):
    probabilities = scores.softmax(-1)
    return _gate(scores, k, lambda best, chosen: probabilities.gather(-1, chosen))


@mistake(
    "top_k_gate",
    hint="The chosen scores stand there as they are. Their softmax makes weights of them.",
)
def keeps_the_scores(scores, k):
    return _gate(scores, k, lambda best, chosen: best)


@mistake("top_k_gate", hint="Only the best expert works. k of them do.")
def takes_one(scores, k):
    return _gate(scores, 1, lambda best, chosen: torch.ones_like(best))


@mistake(
    "top_k_gate",
    hint="All chosen experts have the same weight. Weigh them by the softmax of their scores.",
)
def weighs_evenly(scores, k):
    return _gate(scores, k, lambda best, chosen: torch.full_like(best, 1 / k) + 0 * best)


@mistake("top_k_gate", hint="All experts work: this is the softmax of all scores.")
def takes_all(scores, k):
    return scores.softmax(-1)


@mistake(
    "top_k_gate",
    hint="The scores that were not chosen are set to 0, not to -inf: exp(0) = 1, so they still get "
    "weight.",
)
def fills_with_zero(scores, k):
    return _gate(scores, k, lambda best, chosen: best).softmax(-1)


@mistake(
    "top_k_gate",
    hint="The scores that were not chosen are set to a finite number, not to -inf. What the "
    "softmax makes of it is small, but above 0: these experts count as chosen.",
)
def fills_with_minus_thirty(scores, k):
    best, chosen = scores.topk(k, dim=-1)
    return torch.full_like(scores, -30.0).scatter(-1, chosen, best).softmax(-1)


@mistake("top_k_gate", hint="The k worst experts are chosen.")
def takes_the_worst(scores, k):
    best, chosen = scores.topk(k, dim=-1, largest=False)
    return torch.zeros_like(scores).scatter(-1, chosen, best.softmax(-1))


@mistake(
    "top_k_gate",
    hint="Each expert chooses k tokens. It is the other way round: each token chooses k experts.",
)
def experts_choose(scores, k):
    best, chosen = scores.topk(min(k, len(scores)), dim=0)
    return torch.zeros_like(scores).scatter(0, chosen, best.softmax(0))


@mistake(
    "top_k_gate",
    hint="These are the k weights alone, (N, k). Put them where their experts stand: (N, E).",
)
def gives_only_k(scores, k):
    return scores.topk(k, dim=-1).values.softmax(-1)


@mistake(
    "top_k_gate",
    hint="Whoever has the k-th best score or a better one is chosen. On a tie these are more than "
    "k: let topk choose.",
)
def chooses_all_that_tie(scores, k):
    smallest = scores.sort(dim=1, descending=True).values[:, k - 1 : k]
    return scores.masked_fill(scores < smallest, -math.inf).softmax(dim=1)


@mistake(
    "top_k_gate",
    hint="The softmax is taken twice: once of the scores, then of what came out.",
)
def takes_softmax_twice(scores, k):
    return _gate(scores.softmax(-1), k, lambda best, chosen: best.softmax(-1))


@mistake("top_k_gate", hint="The weights stand in the first k places, not in those of the chosen.")
def fills_the_first_places(scores, k):
    return F.pad(scores.topk(k, dim=-1).values.softmax(-1), (0, scores.shape[1] - k))


@mistake(
    "top_k_gate",
    hint="The weights went to the wrong experts: indices and weights are in different orders.",
)
def sorts_the_places(scores, k):
    best, chosen = scores.topk(k, dim=-1)
    places = chosen.sort(dim=-1).values
    return torch.zeros_like(scores).scatter(-1, places, best.softmax(-1))


@alternative("top_k_gate")
def hides_the_others(scores, k):
    chosen = scores.sort(dim=1, descending=True).indices[:, :k]
    hidden = torch.full_like(scores, -math.inf).scatter(1, chosen, 0.0)
    return (scores + hidden).softmax(dim=1)


@alternative("top_k_gate")
def gates_in_a_loop(scores, k):
    rows = []
    for row in scores:
        chosen = sorted(range(len(row)), key=lambda e: row[e].item())[-k:]
        others = torch.ones_like(row, dtype=torch.bool)
        others[chosen] = False
        rows.append(torch.where(others, -math.inf, row).softmax(0))
    return torch.stack(rows)


@alternative("top_k_gate")
def divides_what_is_left(scores, k):
    chosen = scores.argsort(dim=1).argsort(dim=1) >= scores.shape[1] - k
    kept = torch.exp(scores - scores.amax(dim=1, keepdim=True)) * chosen
    return kept / kept.sum(dim=1, keepdim=True)


@careless("top_k_gate")
def scatters_into_the_cpu(scores, k):
    best, chosen = scores.topk(k, dim=1)
    return torch.zeros(scores.shape, dtype=scores.dtype).scatter(1, chosen, best.softmax(1))


@careless("top_k_gate")
def fills_gates_in_one_by_one(scores, k):
    gates = torch.zeros(scores.shape)
    for n, row in enumerate(scores):
        best, chosen = row.topk(k)
        for e, weight in zip(chosen.tolist(), best.softmax(0).tolist(), strict=True):
            gates[n, e] = weight
    return gates


def _balance(scores, gates, share=None, probability=None, times=None):
    chosen = (gates > 0).to(scores)
    f = chosen.sum(0) / chosen.sum() if share is None else share(chosen)
    P = scores.softmax(-1).mean(0) if probability is None else probability(scores)
    return (scores.shape[1] if times is None else times) * (f * P).sum()


@mistake("load_balance_loss", hint="The factor E is missing: an even spread should give 1.")
def forgets_the_factor(scores, gates):
    return _balance(scores, gates, times=1)


@mistake(
    "load_balance_loss",
    hint="A share is divided by the number of tokens. With k choices for each token the shares "
    "then add up to k. Divide by the number of all choices.",
)
def divides_by_the_tokens(scores, gates):
    return _balance(scores, gates, share=lambda chosen: chosen.mean(0))


@mistake(
    "load_balance_loss",
    hint="The shares are means of the gates. A share counts choices, whatever their weights.",
)
def averages_the_gates(scores, gates):
    return _balance(scores, gates, share=lambda chosen: gates.mean(0))


@mistake(
    "load_balance_loss",
    hint="The probabilities are those of the gates. They come from the softmax of all scores, also "
    "of experts that were not chosen: these could not be helped otherwise.",
)
def takes_the_gates_for_probabilities(scores, gates):
    return _balance(scores, gates, probability=lambda scores: gates.mean(0))


@mistake(
    "load_balance_loss",
    hint="The softmax runs over the tokens. Each token has probabilities for the experts.",
)
def softmax_over_tokens(scores, gates):
    return _balance(scores, gates, probability=lambda scores: scores.softmax(0).mean(0))


@mistake(
    "load_balance_loss", hint="The mean scores are used as they are: their softmax is missing."
)
def forgets_the_softmax(scores, gates):
    return _balance(scores, gates, probability=lambda scores: scores.mean(0))


@mistake(
    "load_balance_loss",
    hint="The softmax is taken of the mean scores. Take it for each token, then the mean.",
)
def averages_first(scores, gates):
    return _balance(scores, gates, probability=lambda scores: scores.mean(0).softmax(0))


@mistake(
    "load_balance_loss",
    hint="The factor is the number of tokens, N. It is the number of experts, E.",
)
def multiplies_by_tokens(scores, gates):
    return _balance(scores, gates, times=len(scores))


@mistake(
    "load_balance_loss",
    hint="This is the mean over the experts, E times too small. It is E times their sum.",
)
def averages_the_experts(scores, gates):
    return _balance(scores, gates, times=1 / scores.shape[1])


@mistake(
    "load_balance_loss", hint="Shares are multiplied with shares: no gradient gets to the router."
)
def squares_the_shares(scores, gates):
    share = (gates > 0).to(scores).sum(0) / (gates > 0).sum()
    return _balance(scores, gates, probability=lambda scores: share + 0 * scores.mean(0))


@mistake(
    "load_balance_loss",
    hint="The probabilities are cut off from the gradient. The shares have none, so nothing is "
    "left from which the router could learn.",
)
def detaches_the_probabilities(scores, gates):
    return _balance(scores, gates, probability=lambda scores: scores.softmax(-1).mean(0).detach())


@mistake(
    "load_balance_loss",
    hint="Only the best expert of each token is counted. All k choices are.",
)
def counts_the_best_only(scores, gates):
    E = scores.shape[1]
    best = F.one_hot(gates.argmax(dim=1), E).to(scores)
    return _balance(scores, gates, share=lambda chosen: best.mean(0))


@mistake(
    "load_balance_loss",
    hint="Only the probabilities of tokens that chose the expert go in. Average choices and "
    "probabilities over all tokens, each for itself, and multiply then.",
)
def multiplies_token_by_token(scores, gates):
    chosen = (gates > 0).to(scores)
    together = (chosen * scores.softmax(-1)).sum() / chosen.sum()
    return scores.shape[1] * together


@alternative("load_balance_loss")
def counts_with_einsum(scores, gates):
    chosen = torch.where(gates != 0, 1.0, 0.0).to(scores.dtype)
    product = torch.einsum("ne,me->", chosen, torch.softmax(scores, 1))
    return product * scores.shape[1] / (chosen.sum() * scores.shape[0])


@alternative("load_balance_loss")
def counts_expert_by_expert(scores, gates):
    probabilities, total = scores.softmax(1), 0.0
    for e in range(scores.shape[1]):
        share = (gates[:, e] > 0).sum() / (gates > 0).sum()
        total = total + share.to(scores.dtype) * probabilities[:, e].mean()
    return total * scores.shape[1]


@careless("load_balance_loss")
def counts_on_the_cpu(scores, gates):
    share = torch.zeros(scores.shape[1])
    for row in gates.tolist():
        share += torch.tensor([float(gate > 0) for gate in row])
    return _balance(scores, gates, share=lambda chosen: share / share.sum())


@careless("load_balance_loss")
def balances_in_float32(scores, gates):
    return _balance(scores.float(), gates)


IN_FLOAT32 = "the check's models are float32"
EQUIVALENT = {
    "DecoderOnly: with one call of `promote_types` left out: wide = x.dtype": IN_FLOAT32,
    "DecoderOnly: with two arguments of one call of `promote_types` exchanged: wide = "
    "torch.promote_types(torch.float32, x.dtype)": "the wider of two dtypes has no order",
    "DecoderOnly: with one call of `to` left out: x = x + sinusoidal_positions(positions, "
    "d_model)": IN_FLOAT32,
    "join_text_and_summary: without `strict` in one call of `zip`: rows = [[*text, SEP, "
    "*summary, EOS] for text, summary in zip(texts, summaries)]": (
        "there are as many summaries as texts"
    ),
    "join_text_and_summary: with False once where True belongs: rows = [[*text, SEP, "
    "*summary, EOS] for text, summary in zip(texts, summaries, strict=False)]": (
        "there are as many summaries as texts"
    ),
    "join_text_and_summary: without `strict` in one call of `zip`: for b, (row, text) in "
    "enumerate(zip(rows, texts)): tokens[b, :len(row)] = torch.tensor(row) counted[b, "
    "len(text) + 1:le…": ("there are as many summaries as texts"),
    "join_text_and_summary: with False once where True belongs: for b, (row, text) in "
    "enumerate(zip(rows, texts, strict=False)): tokens[b, :len(row)] = torch.tensor(row) "
    "counted[b, le…": ("there are as many summaries as texts"),
    "join_text_and_summary: whose result is cut off from the gradient: return "
    "(tokens.detach(), counted.detach())": ("ids and bools have no gradient"),
    "language_model_loss: with one bound of a slice left out: log_p = "
    "torch.log_softmax(logits[:, :], dim=-1)": ("gather reads as many positions as the target has"),
    "DecoderOnly: without `dtype` in one call of `arange`: positions = torch.arange(T, "
    "device=x.device)": ("whole numbers make positions in float32, which is near enough"),
    "local_block_attention: with `k` once where `q` belongs: T = k.shape[-2]": (
        "all three have T positions"
    ),
    "local_block_attention: with `v` once where `q` belongs: T = v.shape[-2]": (
        "all three have T positions"
    ),
    "local_block_attention: with `k` once where `q` belongs: context = masked_attention(q, "
    "k, v, causal_mask(block, k.device))": ("all three are on one device"),
    "local_block_attention: with `v` once where `q` belongs: context = masked_attention(q, "
    "k, v, causal_mask(block, v.device))": ("all three are on one device"),
    "memory_compressed_attention: with `k` once where `q` belongs: position = "
    "torch.arange(q.shape[-2], device=k.device)": ("all three are on one device"),
    "memory_compressed_attention: with `v` once where `q` belongs: position = "
    "torch.arange(q.shape[-2], device=v.device)": ("all three are on one device"),
    "memory_compressed_attention: with `v` once where `k` belongs: last = "
    "torch.arange(v.shape[-2], device=q.device) * stride + stride - 1": (
        "there are as many values as keys"
    ),
    "memory_compressed_attention: with `k` once where `q` belongs: last = "
    "torch.arange(k.shape[-2], device=k.device) * stride + stride - 1": (
        "all three are on one device"
    ),
    "memory_compressed_attention: with `v` once where `q` belongs: last = "
    "torch.arange(k.shape[-2], device=v.device) * stride + stride - 1": (
        "all three are on one device"
    ),
    "top_k_gate: without `dim` in one call of `topk`: best, chosen = scores.topk(k)": (
        "the last axis is the default"
    ),
    "top_k_gate: with one minus sign left out: best, chosen = scores.topk(k, dim=1)": (
        "of two axes the second is the last"
    ),
    "top_k_gate: with one minus sign left out: weights = torch.softmax(best, dim=1)": (
        "of two axes the second is the last"
    ),
    "top_k_gate: with one minus sign left out: return torch.zeros_like(scores).scatter(1, "
    "chosen, weights)": ("of two axes the second is the last"),
    "load_balance_loss: with one call of `to` left out: chosen = gates > 0": (
        "whole numbers divide to float32, which is near enough"
    ),
    "load_balance_loss: with `gates` once where `scores` belongs: chosen = (gates > "
    "0).to(gates.dtype)": ("both have the same dtype"),
    "load_balance_loss: with one call of `sum` left out: share = chosen / chosen.sum()": (
        "the sum over the tokens is then taken at the end"
    ),
    "load_balance_loss: with one minus sign left out: probability = torch.softmax(scores, "
    "dim=1).mean(dim=0)": ("of two axes the second is the last"),
    "load_balance_loss: with `gates` once where `scores` belongs: return gates.shape[1] * "
    "(share * probability).sum()": ("both have E columns"),
}
