"""Lesson 02: a recurrent encoder and decoder, and the one vector between them.

Token ids are those of `attention.provided.data.numbers`: PAD fills up, BOS begins, EOS ends.
"""

import torch
from torch import nn

from attention.provided import demand
from attention.provided.data.tokens import BOS, EOS, PAD


def gru_step(x, h, W_x, W_h, b_x, b_h):
    """Take one step of a gated recurrent unit: read x, and go from the state h to the next.

    x         (B, d_x)      the input of this step
    h         (B, d)        the state before it
    W_x, b_x  (3d, d_x), (3d,)  rows 0..d-1 make the reset gate r, the next d rows the update
    W_h, b_h  (3d, d), (3d,)    gate z, the last d rows the candidate n
    returns   (B, d)        the state after it

        r = sigmoid(W_xr x + b_xr + W_hr h + b_hr)
        z = sigmoid(W_xz x + b_xz + W_hz h + b_hz)
        n = tanh(W_xn x + b_xn + r · (W_hn h + b_hn))
        next state = (1 - z) · n + z · h

    Source: Cho et al. (2014), in the form and the order of gates of `torch.nn.GRUCell`.
    """
    # exercise: about 6 lines
    x_r, x_z, x_n = (x @ W_x.T + b_x).chunk(3, dim=1)  # (B, d) each
    h_r, h_z, h_n = (h @ W_h.T + b_h).chunk(3, dim=1)  # (B, d) each
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h  # (B, d)


def run_gru(x, W_x, W_h, b_x, b_h):
    """Run a GRU over whole sequences, one step after the other, from a state of zeros.

    x        (B, T, d_x)
    W_x …    as in `gru_step`
    returns  (B, T, d)  the state after every step
    """
    h = x.new_zeros(x.shape[0], W_h.shape[1])  # (B, d)
    states = []
    for t in range(x.shape[1]):
        h = gru_step(x[:, t], h, W_x, W_h, b_x, b_h)
        states.append(h)
    return torch.stack(states, dim=1)  # (B, T, d)


def encode(states, lengths):
    """Pick the encoding of each sequence: the state after its last true token.

    states   (B, T, d)  the states after each of T steps; those after the true end have read PAD
    lengths  (B,)       the true lengths, from 1 to T
    returns  (B, d)

    >>> states = torch.tensor([[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]]])
    >>> encode(states, torch.tensor([3, 1]))
    tensor([[3.],
            [4.]])
    """
    rows = torch.arange(len(lengths), device=states.device)  # (B,)
    return states[rows, lengths - 1]  # (B, d)


def reverse_source(source, lengths):
    """Reverse each sequence, and leave the padding where it is: after the end.

    source   (B, T) or (B, T, d)  ids or vectors, filled up after the true end
    lengths  (B,)                 the true lengths
    returns  same shape and dtype as `source`

    Source: Sutskever, Vinyals and Le (2014), section 3.3.

    >>> reverse_source(torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]]), torch.tensor([4, 2]))
    tensor([[2, 7, 6, 5],
            [2, 8, 0, 0]])
    """
    # exercise: about 4 lines
    turned = source.clone()
    for row, length in enumerate(lengths.tolist()):
        turned[row, :length] = source[row, :length].flip(0)
    return turned


def shift_right(target):
    """Make the decoder's input for teacher forcing: at each step, the true token before.

    target   (B, T)  ids
    returns  (B, T)  BOS, then the target without its last column

    >>> shift_right(torch.tensor([[5, 6, 2], [7, 2, 0]]))
    tensor([[1, 5, 6],
            [1, 7, 2]])
    """
    begin = torch.full_like(target[:, :1], BOS)  # (B, 1)
    return torch.cat([begin, target[:, :-1]], dim=1)  # (B, T)


def masked_cross_entropy(logits, target):
    """Average -log p(true token) over all tokens that are not padding; EOS is one of them.

    logits   (B, T, vocab_size)  scores of any size, before the softmax
    target   (B, T)              the true ids; positions with PAD do not count
    returns  ()                  one mean over all true tokens of the batch, in nats

    >>> logits = torch.zeros(1, 2, 4)
    >>> masked_cross_entropy(logits, torch.tensor([[3, PAD]]))  # one token of four: log 4
    tensor(1.3863)
    """
    # exercise: about 3 lines
    log_p = torch.log_softmax(logits, dim=2)  # (B, T, vocab_size)
    losses = -log_p.gather(2, target.unsqueeze(2)).squeeze(2)  # (B, T)
    return losses[target != PAD].mean()  # ()


def train(model, batches, optimizer):
    """Take one step of training for each batch, and return the loss of every batch.

    model      model(source, lengths, target) gives the logits (B, T, vocab_size) of the target
    batches    each has batch.source (B, T_k), batch.lengths (B,) and batch.target (B, T); they may
               come from a generator, which can be read only once
    optimizer  of the model's parameters, one of torch.optim
    returns    a list of floats: the loss of each batch, before the step taken on it
    """
    losses = []
    # exercise: about 7 lines
    for batch in batches:
        optimizer.zero_grad()
        logits = model(batch.source, batch.lengths, batch.target)
        loss = masked_cross_entropy(logits, batch.target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def decoder_step(read, state, context, weights):
    """Let the decoder read one token per sequence and score what comes next.

    read     (B,)            the ids read
    state    (B, d)          the state before
    context  (B, d_context)  what the decoder knows of the source
    weights  a dict of tensors: embedding (vocab_size, d_x); W_x, W_h, b_x, b_h as in `gru_step`,
             for inputs of d_x + d_context numbers; W_out (vocab_size, d + d_context); b_out
    returns  logits (B, vocab_size) of the next token, and the new state (B, d)

    Source: Cho et al. (2014): the context is read again at every step.
    """
    x = torch.cat([weights["embedding"][read], context], dim=1)  # (B, d_x + d_context)
    gates = (weights[name] for name in ("W_x", "W_h", "b_x", "b_h"))
    state = torch.gru_cell(x, state, *gates)  # your gru_step, as PyTorch ships it
    features = torch.cat([state, context], dim=1)  # (B, d + d_context)
    return features @ weights["W_out"].T + weights["b_out"], state


def greedy_decode(state, context, weights, max_length):
    """Write a sequence token by token, each time the most probable one.

    state       (B, d)          the decoder's first state
    context     (B, d_context)  the encoding, the same at every step
    weights     the decoder's weights, for `decoder_step`
    max_length  the largest number of steps
    returns     (B, T)  ids; a row that has ended with EOS goes on with PAD, and T is the number
                of steps until all rows have ended, at most `max_length`

    The first token read is BOS. Afterwards each step reads what the step before has written.
    Refuses a max_length below 1, and an empty batch.
    """
    demand.counts(B=len(state), max_length=max_length)
    tokens = torch.full((state.shape[0],), BOS, device=state.device)  # (B,)
    ended = torch.zeros_like(tokens, dtype=torch.bool)  # (B,)
    written = []
    # exercise: about 6 lines
    while len(written) < max_length and not ended.all():
        logits, state = decoder_step(tokens, state, context, weights)
        tokens = logits.argmax(dim=1).masked_fill(ended, PAD)  # (B,)
        written.append(tokens)
        ended = ended | (tokens == EOS)
    return torch.stack(written, dim=1)  # (B, T)


class Seq2Seq(nn.Module):
    """A translator with a bottleneck: all that the decoder knows of the source is one vector.

    forward(source, lengths, target)  (B, T_k), (B,), (B, T_q) -> logits (B, T_q, vocab_size)

    Raises ValueError for a size below 1.
    """

    def __init__(self, source_size, target_size, d_embedding=32, d_state=64, reverse=False):
        super().__init__()
        demand.counts(source_size=source_size, target_size=target_size)
        demand.counts(d_embedding=d_embedding, d_state=d_state)
        d_embedding, d_state = int(d_embedding), int(d_state)  # nn.GRU knows no int of numpy's
        self.reverse = reverse
        self.source_embedding = nn.Embedding(source_size, d_embedding)
        self.encoder = nn.GRU(d_embedding, d_state, batch_first=True)
        self.first_state = nn.Linear(d_state, d_state)
        self.target_embedding = nn.Embedding(target_size, d_embedding)
        self.decoder = nn.GRU(d_embedding + d_state, d_state, batch_first=True)
        self.output = nn.Linear(2 * d_state, target_size)

    def encoding(self, source, lengths):
        """Return the one vector per source: (B, d_state)."""
        if self.reverse:
            source = reverse_source(source, lengths)
        states, _ = self.encoder(self.source_embedding(source))  # (B, T_k, d_state)
        return encode(states, lengths)

    def forward(self, source, lengths, target):
        """Score every target token, given the true tokens before it (teacher forcing)."""
        context = self.encoding(source, lengths)  # (B, d_state)
        state = torch.tanh(self.first_state(context))  # (B, d_state)
        context = context.unsqueeze(1).expand(-1, target.shape[1], -1)  # (B, T_q, d_state)
        read = self.target_embedding(shift_right(target))  # (B, T_q, d_embedding)
        states, _ = self.decoder(torch.cat([read, context], dim=2), state.unsqueeze(0))
        return self.output(torch.cat([states, context], dim=2))

    @torch.no_grad()
    def translate(self, source, lengths, max_length=100):
        """Return the greedy translation: ids (B, T)."""
        context = self.encoding(source, lengths)
        state = torch.tanh(self.first_state(context))
        weights = {
            "embedding": self.target_embedding.weight,
            "W_x": self.decoder.weight_ih_l0,
            "W_h": self.decoder.weight_hh_l0,
            "b_x": self.decoder.bias_ih_l0,
            "b_h": self.decoder.bias_hh_l0,
            "W_out": self.output.weight,
            "b_out": self.output.bias,
        }
        return greedy_decode(state, context, weights, max_length)


# Inputs on which a wrong answer shows


def break_masked_cross_entropy():
    """Return an input for which `averages_each_sequence_first` gives the wrong loss.

    returns  a tuple (logits, target): logits (B, T, vocab_size), finite floating-point numbers, and
             target (B, T), whole numbers: in every row at least one token, padding only after them
    """
    logits = torch.zeros(2, 3, 4)
    logits[0, 0, 3] = 5.0
    return logits, torch.tensor([[3, PAD, PAD], [3, 3, 3]])
