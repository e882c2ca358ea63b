"""Lesson 03: a decoder that looks back at all encoder states (Bahdanau, Cho and Bengio, 2014)."""

import torch
from torch import nn

from attention.provided import demand
from attention.provided.models.additive_attention import attend
from attention.provided.models.recurrent import GreedyTranslator, run_packed
from attention.sequence_to_sequence import decoder_step, shift_right


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
        self.attention = nn.ModuleDict(
            {
                "W_q": nn.Linear(d_state, d_attention, bias=False),
                "W_k": nn.Linear(2 * d_state, d_attention, bias=False),
                "v": nn.Linear(d_attention, 1, bias=False),
            }
        )
        self.decoder = nn.GRUCell(d_embedding + 2 * d_state, d_state)
        self.output = nn.Linear(3 * d_state, target_size)

    def encode(self, source, lengths):
        """Return the annotations (B, T_k, 2 d_state) and the decoder's first state (B, d_state)."""
        annotations, last = run_packed(self.encoder, self.source_embedding(source), lengths)
        return annotations, torch.tanh(self.first_state(last[1]))

    def look_back(self, annotations, state, lengths, target):
        """Return logits (B, T_q, vocab_size) and weights (B, T_q, T_k), by teacher forcing."""
        weights, scores, alignment = self.step_weights(), [], []
        for tokens in shift_right(target).unbind(1):  # (B,)
            step = attention_decoder_step(tokens, state, annotations, lengths, weights)
            logits, state, attention = step
            scores.append(logits)
            alignment.append(attention)
        return torch.stack(scores, dim=1), torch.stack(alignment, dim=1)

    def forward(self, source, lengths, target):
        """Score every target token, given the true tokens before it."""
        return self.look_back(*self.encode(source, lengths), lengths, target)[0]

    def write(self, tokens, state, annotations, lengths):
        """Take one step: logits (B, vocab_size), the new state, the attention weights (B, T_k)."""
        return attention_decoder_step(tokens, state, annotations, lengths, self.step_weights())


def right_without(model, source, target, words):
    """Hide one word from each letter, and from this letter alone: is the letter still right?

    model    model.encode(source, lengths) gives the annotations (1, T_k, c) and the first state;
             model.write(tokens, state, annotations, lengths) takes a step of the decoder: logits
             (1, vocab_size), the new state, attention weights
    source   (1, T_k)  ids of one source without padding, at least two
    target   (1, T_q)  ids of its translation: the decoder reads these true letters
    words    a list of T_q ints, from 0: which word is hidden from which letter
    returns  a list of T_q bools: whether the most probable letter is the true one
    """
    lengths = torch.full_like(source[:, 0], source.shape[1])  # (1,)
    annotations, state = model.encode(source, lengths)
    read = shift_right(target)  # (1, T_q)
    right = []
    # exercise: about 5 lines
    for letter, word in enumerate(words):
        others = torch.cat([annotations[:, :word], annotations[:, word + 1 :]], dim=1)
        logits, _, _ = model.write(read[:, letter], state, others, lengths - 1)
        right.append(bool(logits.argmax() == target[0, letter]))
        _, state, _ = model.write(read[:, letter], state, annotations, lengths)
    return right


# Inputs on which a wrong answer shows


def break_masked_softmax():
    """Return an input for which `divides_again_after_the_mask` gives wrong weights.

    returns  a tuple (scores, lengths): scores (B, T_q, T_k), finite floating-point numbers, and
             lengths (B,), whole numbers from 1 to T_k
    """
    return torch.tensor([[[0.0, 1000.0]]]), torch.tensor([1])
