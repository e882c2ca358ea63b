"""Lesson 03: a decoder that looks back at all encoder states (Bahdanau, Cho and Bengio, 2014)."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attention.data import BOS, EOS, PAD
from attention.getting_started import softmax
from attention.sequence_to_sequence import reverse_source, run_gru, shift_right


class AdditiveAttention(nn.Module):
    def __init__(self, d_q, d_k, d_attention):
        super().__init__()
        # exercise: about 3 lines
        self.W_q = nn.Linear(d_q, d_attention, bias=False)
        self.W_k = nn.Linear(d_k, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)

    def forward(self, q, k, lengths):
        # exercise: about 5 lines
        hidden = torch.tanh(self.W_q(q).unsqueeze(1) + self.W_k(k))
        scores = self.v(hidden).squeeze(2)
        inside = torch.arange(k.shape[1], device=k.device) < lengths.unsqueeze(1)
        weights = torch.softmax(scores.masked_fill(~inside, -torch.inf), dim=1)
        return (weights.unsqueeze(1) @ k).squeeze(1), weights


class BahdanauTranslator(nn.Module):
    def __init__(self, source_size, target_size, d_embedding=32, d_state=64, d_attention=64):
        super().__init__()
        self.source_embedding = nn.Embedding(source_size, d_embedding)
        self.encoder = nn.GRU(d_embedding, d_state, batch_first=True, bidirectional=True)
        self.target_embedding = nn.Embedding(target_size, d_embedding)
        self.first = nn.Linear(d_state, d_state)
        self.attention = AdditiveAttention(d_state, 2 * d_state, d_attention)
        self.decoder = nn.GRUCell(d_embedding + 2 * d_state, d_state)
        self.output = nn.Linear(d_state+2*d_state, target_size)

    def encoding(self, source, lengths):
        packed = pack_padded_sequence(self.source_embedding(source), lengths.cpu(), True, False)
        annotations, last = self.encoder(packed)
        annotations = pad_packed_sequence(annotations, True)[0]
        return annotations, torch.tanh(self.first(last[1]))

    def forward(self, source, lengths, target):
        k, state = self.encoding(source, lengths)
        read = self.target_embedding(shift_right(target))
        logits = []
        for t in range(target.shape[1]):
            context, _ = self.attention(state, k, lengths)
            state = self.decoder(torch.cat([read[:, t], context], 1), state)
            logits.append(torch.cat([state, context], 1))
        return self.output(torch.stack(logits, 1))

    @torch.no_grad()
    def translate(self, source, lengths, max_length=100):
        k, state = self.encoding(source, lengths)
        tokens = torch.full_like(lengths, BOS)
        ended = torch.zeros_like(tokens, dtype=torch.bool)
        out = []
        while len(out) < max_length and not ended.all():
            context, _ = self.attention(state, k, lengths)
            state = self.decoder(torch.cat([self.target_embedding(tokens), context], 1), state)
            tokens = self.output(torch.cat([state, context], 1)).argmax(1).masked_fill(ended, PAD)
            out.append(tokens)
            ended |= tokens == EOS
        return torch.stack(out, 1)
