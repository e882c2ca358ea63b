"""Lesson 10: the whole Transformer, from tokens to translations (Vaswani et al., 2017)."""

import math

import torch
from torch import nn

from attention.masked_attention import causal_mask
from attention.provided import demand
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.sequence_to_sequence import shift_right
from attention.tokens_and_positions import sinusoidal_positions
from attention.transformer_blocks import DecoderLayer, EncoderLayer

TIED = ("none", "target", "all")


def masks_from_tokens(source, target):
    """Make both masks from the ids: no query may look at PAD, and no target ahead of itself.

    source   (B, T_k)       ids, filled up with PAD
    target   (B, T_q)       ids that the decoder reads, filled up with PAD
    returns  source_mask (B, 1, T_k) and target_mask (B, T_q, T_q), bool; True = may attend

    >>> source_mask, target_mask = masks_from_tokens(
    ...     torch.tensor([[7, 2, 0]]), torch.tensor([[1, 8, 0]])
    ... )
    >>> source_mask.int()
    tensor([[[1, 1, 0]]], dtype=torch.int32)
    >>> target_mask.int()
    tensor([[[1, 0, 0],
             [1, 1, 0],
             [1, 1, 0]]], dtype=torch.int32)
    """
    # exercise: about 3 lines
    source_mask = (source != PAD).unsqueeze(1)  # (B, 1, T_k)
    target_mask = (target != PAD).unsqueeze(1)  # (B, 1, T_q)
    return source_mask, target_mask & causal_mask(target.shape[1], target.device)


class Translator(nn.Module):
    """From source and target tokens to the scores of the next ones, with one layer on each side.

    source_size, target_size  sizes of the vocabularies
    d_model, n_heads, d_ff    sizes of the layers
    dropout                   probability of dropout in training, also on the embeddings
    tied                      "none": three tables; "target": the generator's weight is the table
                              of the target embedding; "all": all three are one table

    The encoder is an EncoderLayer, the decoder a DecoderLayer, both post-norm. Anything called in
    the same way can take their places: `Transformer` puts stacks of layers there.
    Raises ValueError for another `tied`, or for tied="all" with two sizes of vocabulary.
    Refuses a size below 1.

    Source: Vaswani et al. (2017), figure 1 and section 3.4.
    """

    def __init__(self, source_size, target_size, d_model, n_heads, d_ff, dropout=0.1, tied="none"):
        super().__init__()
        demand.counts(source_size=source_size, target_size=target_size, d_model=d_model)
        if tied not in TIED:
            raise ValueError(f"tied={tied!r} is none of {', '.join(TIED)}")
        if tied == "all" and source_size != target_size:
            raise ValueError(f"tied: source_size={source_size} is not target_size={target_size}")
        self.source_embedding = nn.Embedding(source_size, d_model)
        self.target_embedding = nn.Embedding(target_size, d_model)
        self.generator = nn.Linear(d_model, target_size, bias=False)
        for table in (self.source_embedding, self.target_embedding, self.generator):
            nn.init.normal_(table.weight, std=d_model**-0.5)  # as in the paper's own code
        self.encoder = EncoderLayer(d_model, n_heads, d_ff, dropout)
        self.decoder = DecoderLayer(d_model, n_heads, d_ff, dropout)
        self.dropout = nn.Dropout(dropout)
        # exercise: about 4 lines
        if tied in ("target", "all"):
            self.generator.weight = self.target_embedding.weight
        if tied == "all":
            self.source_embedding.weight = self.target_embedding.weight

    def embed(self, tokens, embedding):
        """Turn tokens into vectors that know where they stand; dropout comes last.

        tokens     (B, T)           ids
        embedding  an nn.Embedding
        returns    (B, T, d_model)  √d_model times the tokens' rows, plus sinusoidal positions; all
                                    of it in the dtype of the rows, which need not be float32
        """
        x = embedding(tokens)  # (B, T, d_model)
        wide = torch.promote_types(x.dtype, torch.float32)  # bfloat16 cannot count beyond 256
        positions = torch.arange(x.shape[1], dtype=wide, device=x.device)
        # exercise: about 2 lines
        x = x * math.sqrt(x.shape[2]) + sinusoidal_positions(positions, x.shape[2]).to(x.dtype)
        return self.dropout(x)

    def encode(self, source, source_mask):
        """Describe every source token: (B, T_k), (B, 1, T_k) -> memory (B, T_k, d_model)."""
        # exercise: about 1 line
        return self.encoder(self.embed(source, self.source_embedding), source_mask)

    def decode(self, read, memory, target_mask, source_mask):
        """Score what follows each token that the decoder has read.

        read         (B, T_q)           ids, from BOS on
        memory       (B, T_k, d_model)  from `encode`
        target_mask  (B, T_q, T_q), source_mask (B, 1, T_k)
        returns      (B, T_q, target_size)
        """
        # exercise: about 3 lines
        y = self.embed(read, self.target_embedding)  # (B, T_q, d_model)
        y = self.decoder(y, memory, target_mask, source_mask)  # (B, T_q, d_model)
        return self.generator(y)

    def forward(self, source, target, source_mask, target_mask):
        """Score every target token, given the source and the true tokens before it.

        source       (B, T_k), target (B, T_q)  ids
        source_mask  (B, 1, T_k), target_mask (B, T_q, T_q)
        returns      (B, T_q, target_size)
        """
        # exercise: about 2 lines
        memory = self.encode(source, source_mask)  # (B, T_k, d_model)
        return self.decode(shift_right(target), memory, target_mask, source_mask)


class Encoder(nn.Module):
    """A stack of encoder layers; called like one of them.

    n_layers  how many layers, each with weights of its own
    pre_norm  whether the layers are; if so, one more LayerNorm stands at the end of the stack

    The other arguments are those of `EncoderLayer`. The attributes are `layers` and `norm`.
    Refuses a size below 1.
    """

    kind = EncoderLayer  # of the layers

    def __init__(self, n_layers, d_model, n_heads, d_ff, dropout=0.1, pre_norm=True, fused=False):
        super().__init__()
        demand.counts(n_layers=n_layers, d_model=d_model)
        sizes = (d_model, n_heads, d_ff, dropout, pre_norm, fused)
        # exercise: about 2 lines
        self.layers = nn.ModuleList(self.kind(*sizes) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model) if pre_norm else nn.Identity()

    def forward(self, x, *others):
        """Pass x through all layers: (B, T, d_model) -> (B, T, d_model).

        others  what each layer gets beside x: nothing, or the mask
        """
        # exercise: about 3 lines
        for layer in self.layers:
            x = layer(x, *others)
        return self.norm(x)


class Decoder(Encoder):
    """A stack of decoder layers; called like one of them. The arguments are those of `Encoder`."""

    kind = DecoderLayer

    def forward(self, x, memory, mask=None, memory_mask=None):
        """Pass x (B, T_q, d_model) through all layers, each of which looks at the same memory."""
        return super().forward(x, memory, mask, memory_mask)


def append_best(read, logits):
    """Write one more token in each row: the most probable one after the last.

    read     (B, T)              ids so far, from BOS on
    logits   (B, T, vocab_size)  scores of what follows each of them
    returns  (B, T + 1)          a row whose last id is EOS or PAD goes on with PAD

    >>> logits = torch.eye(6)[torch.tensor([[0, 5], [0, 5]])]  # last, token 5 is the best
    >>> append_best(torch.tensor([[1, 8], [1, 2]]), logits)
    tensor([[1, 8, 5],
            [1, 2, 0]])
    """
    # exercise: about 3 lines
    ended = (read[:, -1] == EOS) | (read[:, -1] == PAD)  # (B,)
    best = logits[:, -1].argmax(dim=1).masked_fill(ended, PAD)  # (B,)
    return torch.cat([read, best.unsqueeze(1)], dim=1)  # (B, T + 1)


class Transformer(Translator):
    """The translator with stacks of layers; it makes its masks from the tokens.

    n_layers  how many layers the encoder and the decoder have, each
    pre_norm  True: LayerNorm before the sublayers, easier to train; False: after, as in the paper
    fused     use PyTorch's fused attention

    The other arguments are those of `Translator`. The defaults are the sizes of the paper's base
    model. `watch_attention` collects the weights of every head of every layer.
    """

    def __init__(
        self,
        source_size,
        target_size,
        d_model=512,
        n_heads=8,
        d_ff=2048,
        n_layers=6,
        dropout=0.1,
        pre_norm=True,
        tied="none",
        fused=False,
    ):
        super().__init__(source_size, target_size, d_model, n_heads, d_ff, dropout, tied)
        sizes = (n_layers, d_model, n_heads, d_ff, dropout, pre_norm, fused)
        self.encoder, self.decoder = Encoder(*sizes), Decoder(*sizes)

    def forward(self, source, target):
        """Score every target token: (B, T_k), (B, T_q) -> (B, T_q, target_size)."""
        source_mask, target_mask = masks_from_tokens(source, shift_right(target))
        return super().forward(source, target, source_mask, target_mask)

    @torch.no_grad()
    def translate(self, source, max_length=100):
        """Return the greedy translation of each row: ids (B, T), filled up with PAD after EOS.

        Raises ValueError for a max_length below 1.
        """
        demand.counts(max_length=max_length)
        read = source.new_full((len(source), 1), BOS)  # (B, 1)
        source_mask, _ = masks_from_tokens(source, read)
        memory = self.encode(source, source_mask)
        while read.shape[1] <= max_length and not ((read == EOS) | (read == PAD)).any(1).all():
            _, target_mask = masks_from_tokens(source, read)
            logits = self.decode(read, memory, target_mask, source_mask)
            read = append_best(read, logits)
        return read[:, 1:]
