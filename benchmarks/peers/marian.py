"""The MarianMT model of transformers, with the sizes and, if asked, the weights of the course's."""

import torch
from torch import nn

from attention.provided.data.tokens import BOS, EOS, PAD
from attention.sequence_to_sequence import shift_right
from attention.tokens_and_positions import sinusoidal_positions
from benchmarks.training import DROPOUT

POSITIONS = 512


class Marian(nn.Module):
    """MarianMTModel, called as the course's model is; ``inner`` is the model itself."""

    def __init__(self, d_model, n_heads, d_ff, n_layers, vocab_size):
        from transformers import MarianConfig, MarianMTModel

        super().__init__()
        sides = ("encoder", "decoder")
        self.inner = MarianMTModel(
            MarianConfig(
                vocab_size=vocab_size,
                d_model=d_model,
                **{f"{side}_layers": n_layers for side in sides},
                **{f"{side}_attention_heads": n_heads for side in sides},
                **{f"{side}_ffn_dim": d_ff for side in sides},
                max_position_embeddings=POSITIONS,
                activation_function="relu",
                dropout=DROPOUT,
                attention_dropout=0.0,
                activation_dropout=DROPOUT,
                scale_embedding=True,
                share_encoder_decoder_embeddings=True,
                tie_word_embeddings=True,
                pad_token_id=PAD,
                bos_token_id=BOS,
                eos_token_id=EOS,
                decoder_start_token_id=BOS,
                forced_eos_token_id=None,
                attn_implementation="sdpa",
            )
        )
        nn.init.normal_(self.inner.model.shared.weight, std=d_model**-0.5)
        self.inner.train()

    def forward(self, source, target):
        """Score every target token: (B, T_k), (B, T_q) -> (B, T_q, vocab_size)."""
        read = shift_right(target)
        return self.inner(
            input_ids=source,
            attention_mask=source != PAD,
            decoder_input_ids=read,
            decoder_attention_mask=read != PAD,
            use_cache=False,
        ).logits

    @torch.no_grad()
    def take(self, model):
        """Take over the weights of a Transformer of the course with pre_norm=False."""
        inner = self.inner.model
        inner.shared.weight.copy_(model.target_embedding.weight)
        table = sinusoidal_positions(torch.arange(POSITIONS).float(), inner.shared.embedding_dim)
        for ours, theirs in ((model.encoder, inner.encoder), (model.decoder, inner.decoder)):
            theirs.embed_positions.weight.copy_(table)  # Marian puts all sines before all cosines
            for a, b in zip(ours.layers, theirs.layers, strict=True):
                cross = hasattr(a, "cross_attention")
                _take(a.attention, b.self_attn)
                b.self_attn_layer_norm.load_state_dict(a.norm_1.state_dict())
                if cross:
                    _take(a.cross_attention, b.encoder_attn)
                    b.encoder_attn_layer_norm.load_state_dict(a.norm_2.state_dict())
                last = a.norm_3 if cross else a.norm_2
                b.final_layer_norm.load_state_dict(last.state_dict())
                b.fc1.load_state_dict(a.feed_forward.linear_1.state_dict())
                b.fc2.load_state_dict(a.feed_forward.linear_2.state_dict())


def _take(ours, theirs):
    for mine, other in (
        ("W_q", "q_proj"),
        ("W_k", "k_proj"),
        ("W_v", "v_proj"),
        ("W_o", "out_proj"),
    ):
        getattr(theirs, other).load_state_dict(getattr(ours, mine).state_dict())
