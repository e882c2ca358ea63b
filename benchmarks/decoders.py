"""Lesson 20's decoder: training steps, and those of transformers' Llama and of x-transformers.

All have the same sizes and parameters: RMSNorm in front of the sublayers, rotary
positions, SwiGLU, heads that share keys and values, no bias, and one table. They learn from whole
texts without padding, all with AdamW in one kernel, clipping and PyTorch's attention kernel. Their
logits are compared with the same weights; x-transformers begins with a table of larger numbers.
"""

import torch
from torch import nn

from attention.modern_decoder import ModernDecoder, pair_up
from attention.provided.models.decoders.llama import load_llama
from attention.train.core.devices import dtype_of_products
from attention.train.speed.decoder import DecoderLoss, prepare_decoder
from attention.training import ModelAndLoss, TrainStep
from benchmarks.llama_outputs import decoder

SMOOTHING, BETAS, EPS, MAX_NORM = 0.1, (0.9, 0.98), 1e-9, 1.0
SIZES = {  # hidden units: two thirds of 4 · d_model, rounded up to a multiple of 32
    "mini": {"d_model": 32, "n_heads": 4, "n_kv_heads": 2, "d_ff": 24, "n_layers": 2},
    "tiny": {"d_model": 128, "n_heads": 4, "n_kv_heads": 2, "d_ff": 352, "n_layers": 4},
    "small": {"d_model": 256, "n_heads": 4, "n_kv_heads": 2, "d_ff": 704, "n_layers": 4},
    "base": {"d_model": 512, "n_heads": 8, "n_kv_heads": 4, "d_ff": 1376, "n_layers": 6},
}
VOCABULARY = {"mini": 40, "tiny": 9_700, "small": 10_000, "base": 37_000}
SIZES = {name: {"vocab_size": VOCABULARY[name], **size} for name, size in SIZES.items()}
BATCHES = {"mini": (2, 8, 2), "tiny": (8, 256, 1), "small": (4, 256, 1), "base": (2, 256, 1)}
# texts in a batch, tokens of a text, and batches of a turn; likewise, to fill a GPU
ON_CUDA = BATCHES | {"tiny": (32, 256, 8), "small": (32, 256, 8), "base": (32, 256, 4)}


def batches_of(name, device="cpu"):
    """Batches (read, target) of random ids, (B, T) each, of a size by its name."""
    draw = torch.Generator().manual_seed(0)
    texts, T, count = (ON_CUDA if device == "cuda" else BATCHES)[name]
    ids = torch.randint(3, VOCABULARY[name], (count, texts, T + 1), generator=draw)
    return [(some[:, :-1].contiguous(), some[:, 1:].contiguous()) for some in ids]


def course(size):
    """The course's model, with weights that depend on nothing but the sizes."""
    torch.manual_seed(0)
    return ModernDecoder(**size)


class Llama(nn.Module):
    """LlamaForCausalLM of transformers."""

    def __init__(self, **size):
        super().__init__()
        self.inner = decoder("llama", size).train()

    def forward(self, read, target):
        return self.inner(read, use_cache=False).logits

    @torch.no_grad()
    def give(self, model):
        """Give a ModernDecoder its weights."""
        load_llama(model, self.inner.state_dict(), pair_up)


class XTransformers(nn.Module):
    """The decoder of x-transformers with the same parts."""

    def __init__(self, vocab_size, d_model, n_heads, n_kv_heads, d_ff, n_layers):
        from x_transformers import Decoder, TransformerWrapper

        super().__init__()
        layers = Decoder(
            dim=d_model,
            depth=n_layers,
            heads=n_heads,
            attn_kv_heads=n_kv_heads,
            attn_dim_head=d_model // n_heads,
            attn_flash=True,
            rotary_pos_emb=True,
            rotary_emb_dim=d_model // n_heads,
            use_rmsnorm=True,
            norm_add_unit_offset=False,
            ff_mult=d_ff / d_model,
            ff_glu=True,
            ff_swish=True,
            ff_no_bias=True,
        )
        self.inner = TransformerWrapper(
            num_tokens=vocab_size,
            max_seq_len=0,
            use_abs_pos_emb=False,
            attn_layers=layers,
            tie_embedding=True,
            tie_embedding_scale=1.0,
        )
        for feed_forward in layers.layers[1::2]:
            feed_forward[1].ff[0].proj.bias = None  # which ff_no_bias leaves there

    def forward(self, read, target):
        return self.inner(read)

    @torch.no_grad()
    def give(self, model):
        """Give a ModernDecoder its weights, and norms that add as little as its own do."""
        for part in model.modules():
            if isinstance(part, nn.RMSNorm):
                part.eps = 1e-12
        model.embedding.weight.copy_(self.inner.token_emb.emb.weight)
        parts = iter(self.inner.attn_layers.layers)
        for layer in model.layers:
            norms, attention, _ = next(parts)
            layer.norm_1.weight.copy_(norms[0].g)
            ours = layer.attention
            ours.W_q.weight.copy_(_neighbours(attention.to_q.weight, ours))
            ours.W_k.weight.copy_(attention.to_k.weight)
            ours.W_v.weight.copy_(attention.to_v.weight)
            ours.W_o.weight.copy_(_neighbours(attention.to_out.weight.T, ours).T)
            norms, feed_forward, _ = next(parts)
            layer.norm_2.weight.copy_(norms[0].g)
            first, last = feed_forward.ff[0].proj, feed_forward.ff[2]
            up, gate = first.weight.chunk(2)
            layer.feed_forward.W_up.weight.copy_(up)
            layer.feed_forward.W_gate.weight.copy_(gate)
            layer.feed_forward.W_down.weight.copy_(last.weight)
        model.norm.weight.copy_(self.inner.attn_layers.final_norm.g)


def _neighbours(rows, attention):
    """Bring heads that share keys side by side: rows (d_model, …), where they stand far apart."""
    groups, shared = attention.n_heads // attention.n_kv_heads, attention.n_kv_heads
    return rows.unflatten(0, (groups, shared, -1)).transpose(0, 1).flatten(0, 2)


class Lesson(nn.Module):
    """The lesson's parts, called one after the other."""

    def __init__(self, **size):
        super().__init__()
        self.inner = course(size)

    def forward(self, read, target):
        return self.inner(read)[0]

    @torch.no_grad()
    def give(self, model):
        """Give a ModernDecoder its weights."""
        model.load_state_dict(self.inner.state_dict())


PEERS = {
    "the lesson's parts": Lesson,
    "transformers, Llama": Llama,
    "x-transformers": XTransformers,
}


class Step(TrainStep):
    """A step with the fast loss."""

    def loss(self, source, target):
        """Return the loss, (): ids that are read, and those that follow, (B, T) each."""
        return DecoderLoss(self.model, self.smoothing, self.dtype)(source, target)


def prepare_device(device, batches):
    """Set what the training command sets on a GPU; returns the batches on the device."""
    if device == "cuda":
        torch.set_float32_matmul_precision("high")
    return [tuple(side.to(device) for side in batch) for batch in batches]


def step_of_course(size, batches, device="cpu", dtype="auto"):
    """The step of the training command, with its model."""
    batches, place = prepare_device(device, batches), torch.device(device)
    model = prepare_decoder(course(size), place)
    optimizer = torch.optim.AdamW(
        model.parameters(), betas=BETAS, eps=EPS, weight_decay=0.0, fused=True
    )
    step = Step(model, optimizer, SMOOTHING, MAX_NORM, dtype_of_products(dtype, place))

    def run():
        return [step([batch]).item() for batch in batches]

    return model, run


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


def make(name, size, batches, device="cpu", dtype="auto"):
    """A contestant's model, and one pass over the batches as a function: loss of each step."""
    if name == "course":
        return step_of_course(size, batches, device, dtype)
    return step_of_peer(PEERS[name], size, batches, device, dtype)


@torch.no_grad()
def draw(model):
    """Draw all weights anew, so large that each is felt."""
    for parameter in model.parameters():
        norm = parameter.dim() == 1
        parameter.normal_(float(norm), 0.2 if norm else 0.1)


@torch.no_grad()
def difference(name, size, batch, device="cpu"):
    """The largest difference of a logit from the course's, with the peer's weights, in float32."""
    torch.manual_seed(1)
    peer, model = PEERS[name](**size).eval(), ModernDecoder(**size)
    draw(peer)
    peer.give(model)
    model, peer = prepare_decoder(model, torch.device(device)), peer.to(device)
    read, target = (side.to(device) for side in batch)
    logits = model.norm(model.hidden(read)) @ model.embedding.weight.T
    return (logits - peer(read, target)).abs().max().item()
