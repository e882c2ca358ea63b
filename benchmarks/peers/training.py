"""Training steps: the course's, as its training command takes them, and those of the peers.

All have the same sizes, dropouts, label smoothing, AdamW in one kernel, clipping and batches, and
one table for both embeddings and the output. None drops weights of the attention, and all use
PyTorch's attention kernel. x-transformers has no biases in its attentions and norms.
"""

import random

import torch
from torch import nn
from torch.nn import functional as F

from attention.provided.data.tokens import EOS, PAD, pad
from attention.sequence_to_sequence import shift_right
from attention.train.core.devices import dtype_of_products
from attention.train.core.step import Step
from attention.train.runs.settings import Settings
from attention.train.speed.acceleration import prepare
from attention.training import ModelAndLoss, batch_by_tokens
from attention.transformer import Transformer
from benchmarks import training
from benchmarks.training import DROPOUT, SMOOTHING, PyTorchTransformer

SIZES = {
    "mini": training.SIZES["mini"],  # to try whether all works: default races leave it out
    "tiny": training.SIZES["tiny"],
    "small": {"d_model": 256, "n_heads": 4, "d_ff": 1024, "n_layers": 4, "vocab_size": 10_000},
    "base": training.SIZES["base"],
}
TOKENS = {  # of a batch on each side, and how many batches a turn has
    "mini": (128, 2),
    "tiny": (2048, 4),
    "small": (1024, 1),
    "base": (512, 1),
}
# Likewise, to fill a GPU.
ON_CUDA = TOKENS | {"tiny": (8192, 8), "small": (8192, 8), "base": (8192, 4)}
BETAS, EPS, MAX_NORM = (0.9, 0.98), 1e-9, 1.0


def make_batches(size, tokens, count):
    """Batches (source, target) of random sentences as long as Multi30k's, as training cuts them."""
    draw = random.Random(0)
    lengths = [max(4, round(draw.gauss(14, 4))) for _ in range(3 * count * tokens // 10)]
    pairs = [[length, max(4, length + draw.randint(-2, 2))] for length in lengths]
    pairs.sort()
    cut = batch_by_tokens([max(pair) for pair in pairs], tokens)
    cut = draw.sample(cut, count)
    ids = range(3, size["vocab_size"])
    return [
        tuple(
            pad([[*draw.choices(ids, k=pairs[place][side] - 1), EOS] for place in batch])
            for side in (0, 1)
        )
        for batch in cut
    ]


def real_tokens(batches):
    """Tokens of both sides, without padding."""
    return sum(int((ids != PAD).sum()) for batch in batches for ids in batch)


def course(size, dropout=DROPOUT):
    """The course's model, with weights that depend on nothing but the sizes."""
    torch.manual_seed(0)
    sizes = {name: value for name, value in size.items() if name != "vocab_size"}
    vocabularies = (size["vocab_size"], size["vocab_size"])
    return Transformer(*vocabularies, **sizes, dropout=dropout, tied="all", fused=True)


class NNTransformer(PyTorchTransformer):
    """nn.Transformer, which can take over the weights of a Transformer of the course."""

    @torch.no_grad()
    def take(self, model):
        """Take over the weights of a Transformer of the course."""
        self.table.weight.copy_(model.target_embedding.weight)
        for ours, theirs in _stacks(model, self.stacks.encoder, self.stacks.decoder):
            theirs.norm.load_state_dict(ours.norm.state_dict())
            for a, b in zip(ours.layers, theirs.layers, strict=True):
                names = {"attention": "self_attn", "cross_attention": "multihead_attn"}
                for name, other in names.items():
                    if hasattr(a, name):
                        _take_packed(getattr(a, name), getattr(b, other))
                b.linear1.load_state_dict(a.feed_forward.linear_1.state_dict())
                b.linear2.load_state_dict(a.feed_forward.linear_2.state_dict())
                for name in ("norm_1", "norm_2", "norm_3"):
                    if hasattr(a, name):
                        norm = getattr(b, name.replace("_", ""))
                        norm.load_state_dict(getattr(a, name).state_dict())


class XTransformers(PyTorchTransformer):
    """The stacks of x-transformers behind the embedding of the other peer."""

    def __init__(self, d_model, n_heads, d_ff, n_layers, vocab_size):
        from x_transformers import Decoder, Encoder

        super().__init__(d_model, n_heads, d_ff, 1, vocab_size)
        del self.stacks
        options = {
            "dim": d_model,
            "depth": n_layers,
            "heads": n_heads,
            "attn_dim_head": d_model // n_heads,
            "attn_flash": True,
            "attn_sublayer_dropout": DROPOUT,
            "ff_mult": d_ff / d_model,
            "ff_custom_activation": nn.ReLU(),
            "ff_dropout": DROPOUT,
            "ff_sublayer_dropout": DROPOUT,
        }
        self.encoder, self.decoder = Encoder(**options), Decoder(cross_attend=True, **options)

    def forward(self, source, target):
        read, real = shift_right(target), source != PAD
        memory = self.encoder(self.embed(source), mask=real)
        y = self.decoder(self.embed(read), context=memory, mask=read != PAD, context_mask=real)
        return F.linear(y, self.table.weight)

    @torch.no_grad()
    def take(self, model):
        """Take over the weights of a Transformer of the course."""
        self.table.weight.copy_(model.target_embedding.weight)
        for ours, theirs in _stacks(model, self.encoder, self.decoder):
            blocks = iter(layer[1] for layer in theirs.layers)
            for a in ours.layers:
                for name in ("attention", "cross_attention"):
                    if hasattr(a, name):
                        _take_projections(getattr(a, name), next(blocks))
                feed_forward = next(blocks).ff
                feed_forward[0][0].load_state_dict(a.feed_forward.linear_1.state_dict())
                feed_forward[2].load_state_dict(a.feed_forward.linear_2.state_dict())


def _take_projections(ours, theirs):
    """Copy the projections of the course's attention into that of x-transformers."""
    for name, other in (("W_q", "to_q"), ("W_k", "to_k"), ("W_v", "to_v"), ("W_o", "to_out")):
        getattr(theirs, other).weight.copy_(getattr(ours, name).weight)


def _stacks(model, encoder, decoder):
    return (model.encoder, encoder), (model.decoder, decoder)


def _take_packed(ours, theirs):
    """Copy projections of the course into an nn.MultiheadAttention, which keeps three in one."""
    parts = [ours.W_q, ours.W_k, ours.W_v]
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(ours.W_o.state_dict())


def batches_of(name, device, tokens=None):
    """The batches of a size by its name, with other than the usual tokens on a side if given."""
    usual, count = (ON_CUDA if device == "cuda" else TOKENS)[name]
    return make_batches(SIZES[name], tokens or usual, count)


def prepare_device(device, batches):
    """Set what the training command sets on a GPU; returns the batches on the device."""
    if device == "cuda":
        torch.set_float32_matmul_precision("high")
    return [tuple(side.to(device) for side in batch) for batch in batches]


def step_of_course(size, batches, device="cpu", dtype="auto"):
    """The step of `python -m attention.train`, with its model."""
    batches, place = prepare_device(device, batches), torch.device(device)
    sizes = {name: value for name, value in size.items() if name != "vocab_size"}
    settings = Settings(
        **sizes, dropout=DROPOUT, smoothing=SMOOTHING, tied="all", max_norm=MAX_NORM
    )
    model = prepare(course(size, dropout=DROPOUT), place)
    step = Step(model, settings, place, dtype_of_products(dtype, place))

    def run():
        return [step([batch]).item() for batch in batches]

    return step.model, run


def step_of_peer(kind, size, batches, device="cpu", dtype="auto"):
    """The usual loop of PyTorch around a peer's model."""
    batches = prepare_device(device, batches)
    torch.manual_seed(0)
    model = kind(**size).to(device)
    products = dtype_of_products(dtype, torch.device(device))
    loss = ModelAndLoss(model, SMOOTHING, products).loss
    optimizer = torch.optim.AdamW(
        model.parameters(), betas=BETAS, eps=EPS, weight_decay=0.0, fused=True
    )

    def run():
        losses = []
        for source, target in batches:
            optimizer.zero_grad()
            value = loss(source, target)
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
            optimizer.step()
            losses.append(value.item())
        return losses

    return model, run


PEERS = {"nn.Transformer": NNTransformer, "x-transformers": XTransformers}


def make(name, size, batches, device="cpu", dtype="auto"):
    """A contestant's model, and one pass over the batches as a function: loss of each step."""
    if name == "course":
        return step_of_course(size, batches, device, dtype)
    return step_of_peer(PEERS[name], size, batches, device, dtype)


def difference(name, size, batch, device="cpu"):
    """The largest difference of a logit from the course's, with its weights and out of training.

    Both compute in float32. What the peer does not have, biases in the case of x-transformers, is
    zero in the course's.
    """
    model, peer = course(size).eval(), PEERS[name](**size).eval()
    with torch.no_grad():
        if name == "x-transformers":
            for layer in model.modules():
                for part in ("W_q", "W_k", "W_v", "W_o"):
                    if hasattr(layer, part):
                        getattr(layer, part).bias.zero_()
        peer.take(model)
        model, peer = model.to(device), peer.to(device)
        source, target = (side.to(device) for side in batch)
        gaps = (model(source, target) - peer(source, target)).abs().amax(dim=2)  # (B, T_q)
    return gaps[target != PAD].max().item()
