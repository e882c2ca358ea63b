"""Lesson 03: a decoder that looks back at all encoder states (Bahdanau, Cho and Bengio, 2014)."""

import torch
from torch import nn

from attention.provided import demand
from attention.provided.models.additive_attention import attend
from attention.provided.models.recurrent import GreedyTranslator, run_packed
from attention.sequence_to_sequence import decoder_step, reverse_source, run_gru, shift_right


def bidirectional_annotations(x, lengths, forward, backward):
    """Describe every token by what comes before it and by what comes after it.

    x         (B, T, d_x)   embedded tokens, with anything where the padding is
    lengths   (B,)          the true lengths
    forward   a dict of W_x, W_h, b_x, b_h: the GRU that reads from the first token to the last
    backward  the same for the GRU that reads from the last true token to the first
    returns   (B, T, 2d)    at each token: the state of the forward GRU, then that of the backward
                            GRU. After the true end the numbers mean nothing.

    Source: Bahdanau et al. (2014), section 3.2: the annotations h_j.
    """
    # exercise: about 4 lines
    before = run_gru(x, **forward)  # (B, T, d)
    after = run_gru(reverse_source(x, lengths), **backward)  # (B, T, d), last true token first
    after = reverse_source(after, lengths)  # (B, T, d), in the order of x again
    return torch.cat([before, after], dim=2)  # (B, T, 2d)


def additive_scores(q, k, W_q, W_k, v):
    """Score how well each query and key match, with a small neural network.

    q        (B, T_q, d_q)         queries: decoder states
    k        (B, T_k, d_k)         keys: annotations
    W_q      (d_attention, d_q)    brings queries ...
    W_k      (d_attention, d_k)    ... and keys to the same length
    v        (d_attention,)        makes one number of the hidden layer
    returns  (B, T_q, T_k)         v · tanh(W_q q_i + W_k k_j) for every pair

    Source: Bahdanau et al. (2014), appendix A.1.2.
    """
    # exercise: about 4 lines
    queries = (q @ W_q.T).unsqueeze(2)  # (B, T_q, 1, d_attention)
    keys = (k @ W_k.T).unsqueeze(1)  # (B, 1, T_k, d_attention)
    hidden = torch.tanh(queries + keys)  # (B, T_q, T_k, d_attention)
    return hidden @ v  # (B, T_q, T_k)


def masked_softmax(scores, lengths):
    """Share each query's weight among the true keys; padding gets exactly 0.

    scores   (B, T_q, T_k)  of any size: ±1000 is fine
    lengths  (B,)           the true numbers of keys, at least 1
    returns  (B, T_q, T_k)  rows sum to 1

    >>> masked_softmax(torch.tensor([[[0.0, 0.0, 9.0]]]), torch.tensor([2]))
    tensor([[[0.5000, 0.5000, 0.0000]]])
    """
    # exercise: about 4 lines
    positions = torch.arange(scores.shape[2], device=scores.device)  # (T_k,)
    is_token = positions < lengths.view(-1, 1, 1)  # (B, 1, T_k), True = may attend
    scores = scores.masked_fill(~is_token, -torch.inf)  # exp(-inf) = 0
    return torch.softmax(scores, dim=2)  # (B, T_q, T_k)


class AdditiveAttention(nn.Module):
    """Additive attention as a layer: it owns the matrices that `additive_scores` was given.

    forward(q, k, values, lengths)  (B, T_q, d_q), (B, T_k, d_k), (B, T_k, d_v), (B,)
                                    -> context (B, T_q, d_v) and weights (B, T_q, T_k)

    Three `nn.Linear` layers without bias: `W_q`, `W_k`, both to d_attention features, and `v` from
    d_attention to 1. Scores may be of any size: the weights stay finite.
    """

    def __init__(self, d_q, d_k, d_attention):
        super().__init__()
        # exercise: about 3 lines
        self.W_q = nn.Linear(d_q, d_attention, bias=False)
        self.W_k = nn.Linear(d_k, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)

    def forward(self, q, k, values, lengths):
        """Return one context per query, and the weights that made it."""
        # exercise: about 2 lines
        queries, keys = self.W_q(q), self.W_k(k)  # (B, T_q, d_attention), (B, T_k, d_attention)
        return attend(queries, keys, self.v.weight[0], values, lengths)


def attention_decoder_step(tokens, state, annotations, lengths, weights):
    """Take one step of a decoder that looks back: attend first, then read, then score.

    tokens       (B,)         the ids read
    state        (B, d)       the state before this step: the query
    annotations  (B, T_k, c)  keys and values
    lengths      (B,)         true numbers of annotations
    weights      a dict: W_q (d_attention, d), W_k (d_attention, c) and v (d_attention,) for the
                 scores, and all that `decoder_step` needs
    returns      logits (B, vocab_size), the new state (B, d), attention weights (B, T_k), which
                 stay finite however large the scores are

    Source: Bahdanau et al. (2014), section 3.1: e_ij = a(s_{i-1}, h_j).
    """
    # exercise: about 5 lines
    query = (state @ weights["W_q"].T).unsqueeze(1)  # (B, 1, d_attention)
    keys = annotations @ weights["W_k"].T  # (B, T_k, d_attention)
    context, attention = attend(query, keys, weights["v"], annotations, lengths)
    logits, state = decoder_step(tokens, state, context.squeeze(1), weights)
    return logits, state, attention.squeeze(1)


class BahdanauTranslator(GreedyTranslator):
    """The translator of lesson 02, with a fresh context at every step instead of one vector.

    forward(source, lengths, target)  (B, T_k), (B,), (B, T_q) -> logits (B, T_q, vocab_size)

    Raises ValueError for a size below 1.
    """

    def __init__(self, source_size, target_size, d_embedding=32, d_state=64, d_attention=64):
        super().__init__()
        demand.counts(source_size=source_size, target_size=target_size)
        demand.counts(d_embedding=d_embedding, d_state=d_state, d_attention=d_attention)
        d_embedding, d_state = int(d_embedding), int(d_state)  # nn.GRU knows no int of numpy's
        self.source_embedding = nn.Embedding(source_size, d_embedding)
        self.encoder = nn.GRU(d_embedding, d_state, batch_first=True, bidirectional=True)
        self.first_state = nn.Linear(d_state, d_state)
        self.target_embedding = nn.Embedding(target_size, d_embedding)
        self.attention = AdditiveAttention(d_state, 2 * d_state, d_attention)
        self.decoder = nn.GRUCell(d_embedding + 2 * d_state, d_state)
        self.output = nn.Linear(3 * d_state, target_size)

    def encode(self, source, lengths):
        """Return the annotations (B, T_k, 2 d_state) and the decoder's first state (B, d_state)."""
        annotations, last = run_packed(self.encoder, self.source_embedding(source), lengths)
        return annotations, torch.tanh(self.first_state(last[1]))

    def look_back(self, annotations, state, lengths, target):
        """Return logits (B, T_q, vocab_size) and weights (B, T_q, T_k), by teacher forcing."""
        keys, v = self.attention.W_k(annotations), self.attention.v.weight[0]  # once per sentence
        features, alignment = [], []
        for x in self.target_embedding(shift_right(target)).unbind(1):  # (B, d_embedding)
            query = self.attention.W_q(state).unsqueeze(1)  # (B, 1, d_attention)
            context, weights = attend(query, keys, v, annotations, lengths)
            state = self.decoder(torch.cat([x, context[:, 0]], dim=1), state)  # (B, d_state)
            features.append(torch.cat([state, context[:, 0]], dim=1))
            alignment.append(weights)
        return self.output(torch.stack(features, dim=1)), torch.cat(alignment, dim=1)

    def forward(self, source, lengths, target):
        """Score every target token, given the true tokens before it."""
        return self.look_back(*self.encode(source, lengths), lengths, target)[0]

    def write(self, tokens, state, annotations, lengths):
        """Take one step of `translate`."""
        return attention_decoder_step(tokens, state, annotations, lengths, self.step_weights())


# Inputs on which a wrong answer shows


def break_masked_softmax():
    """An input on which `divides_again_after_the_mask` gives other weights than `masked_softmax`.

    returns  a tuple (scores, lengths): scores (B, T_q, T_k), finite floating-point numbers, and
             lengths (B,), whole numbers from 1 to T_k
    """
    return torch.tensor([[[0.0, 1000.0]]]), torch.tensor([1])
