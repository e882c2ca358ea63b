"""Lesson 17: what attention weights tell of a trained model, and what they hide."""

import torch
from torch import nn
from torch.nn import functional as F

from attention.multi_head_attention import MultiHeadAttention
from attention.provided import demand
from attention.provided.data.tokens import PAD
from attention.provided.measuring.other_weights import TOLERANCE, null_space
from attention.provided.models.attention_weights import watch_attention
from attention.sequence_to_sequence import shift_right
from attention.transformer import Encoder, Transformer, Translator, masks_from_tokens


class Explained(nn.Module):
    """A Transformer that is asked about the tokens it should write.

    model  a Transformer, or a dict of the arguments to build one
    """

    def __init__(self, model):
        super().__init__()
        self.model = model if isinstance(model, nn.Module) else Transformer(**model)

    def log_p(self, source, target, source_mask=None):
        """Return the log-probability of each target token, given the true ones before: (B, T_q).

        source, target  (B, T_k), (B, T_q)  ids, filled up with PAD
        source_mask     bool (B, 1, T_k), True = may be looked at; None: all but PAD
        """
        demand.masks(source_mask=source_mask)
        real, target_mask = masks_from_tokens(source, shift_right(target))
        seen = real if source_mask is None else source_mask
        logits = Translator.forward(self.model, source, target, seen, target_mask)
        return logits.log_softmax(dim=-1).gather(2, target.unsqueeze(2)).squeeze(2)

    def gates(self, B):
        """Return gates of 1 that want gradients, for `watch_attention`: {attention: (B, H)}."""
        demand.counts(0, B=B)
        return {
            name: part.W_o.weight.new_ones(B, part.n_heads).requires_grad_()
            for name, part in self.model.named_modules()
            if isinstance(part, MultiHeadAttention)
        }


class LeaveOneOut(Explained):
    """Tell how much worse the model does without each source token."""

    @torch.no_grad()
    def forward(self, source, target):
        """Hide one source token at a time, from encoder and decoder.

        source, target  (B, T_k), (B, T_q)  ids, filled up with PAD
        returns         (B, T_q, T_k)  entry (t, j): log-probability of target token t, less what it
                        is when source token j is hidden. The columns of padding are 0; the
                        rows of padding are not checked
        """
        # exercise: about 6 lines
        seen, _ = masks_from_tokens(source, target)  # (B, 1, T_k)
        whole = self.log_p(source, target, seen)  # (B, T_q)
        losses = []
        for j in range(source.shape[1]):
            without = seen.clone()
            without[:, :, j] = False
            losses.append(whole - self.log_p(source, target, without))
        return torch.stack(losses, dim=-1)  # (B, T_q, T_k)


class ActivationPatching(Explained):
    """Tell what is written if some of the encoder's vectors come from another sentence."""

    @torch.no_grad()
    def forward(self, source, target, other, places):
        """Hand the decoder a memory in which some vectors are those of the other sentence.

        source, target  (B, T_k), (B, T_q)  ids, filled up with PAD
        other           (B, T_k)  ids of another sentence for each source, filled up with PAD
        places          bool (B, T_k)  True = the vector at this place is that of `other`; never
                        where either of the two sentences has padding
        returns         (B, T_q, target_size)  probability of each token of the vocabulary at each
                        place of the target, given the true ones before it. The rows of padding
                        are not checked

        Refuses places that are not bool.
        Source: Geiger et al. (2021).
        """
        demand.masks(places=places)
        # exercise: about 5 lines
        seen, target_mask = masks_from_tokens(source, shift_right(target))
        memory = self.model.encode(source, seen)  # (B, T_k, d_model)
        theirs = self.model.encode(other, (other != PAD).unsqueeze(1))  # (B, T_k, d_model)
        memory = torch.where(places.unsqueeze(2), theirs, memory)
        logits = self.model.decode(shift_right(target), memory, target_mask, seen)
        return logits.softmax(dim=-1)


def null_space_dimension(values, tolerance=TOLERANCE):
    """Count the independent changes of a row of weights that change neither its sum nor its output.

    values     (..., T, d)  what is weighted
    tolerance  a singular value below this share of the largest one counts as 0
    returns    (...)  int64: the dimension of the space of all u (T,) with u · values = 0 and
               u · 1 = 0, which is T less the rank of `values` with a column of ones beside them
    Refuses a tolerance that is not from 0 to 1.
    Source: Brunner et al. (2020), section 3.

    >>> null_space_dimension(torch.tensor([[1.0], [2.0], [5.0]]))  # 3 weights, 2 conditions
    tensor(1)
    """
    demand.within(0, 1, tolerance=tolerance)
    ones = torch.ones_like(values[..., :1])  # (..., T, 1)
    both = torch.cat([values, ones], dim=-1)  # (..., T, d + 1)
    return values.shape[-2] - torch.linalg.matrix_rank(both, rtol=tolerance)


def perturb_attention(weights, values, direction):
    """Change weights as far as they go in one direction, and leave the output as it is.

    weights    (T,)    none is negative, and they sum to 1
    values     (T, d)  what they weigh
    direction  (T,)    the change is the part of it that lies in the null space of `values`
    returns    (T,)    weights + step · change, with the largest step at which no weight becomes
                       negative: the sum is 1 and the output the same. Without a null space, or
                       with a direction of 0, the weights as they are

    >>> perturb_attention(
    ...     torch.tensor([0.5, 0.0, 0.5]),
    ...     torch.tensor([[1.0], [2.0], [3.0]]),
    ...     torch.tensor([0.0, 1.0, 0.0]),
    ... ).round(decimals=4)
    tensor([0., 1., 0.])
    """
    basis = null_space(values)  # (T, dimension)
    # exercise: about 5 lines
    change = basis @ (basis.T @ direction)  # (T,)
    falls = change < 0
    if not falls.any():
        return weights
    step = (weights[falls] / -change[falls]).min()
    return weights + step * change


def token_identifiability(hidden, inputs, mask, cosine=True):
    """Tell which hidden vectors are still nearest to the token they started from.

    hidden   (B, T, d_model)  vectors of some layer
    inputs   (B, T, d_model)  the vectors that went into the model
    mask     bool (B, T)      True = a real token
    cosine   True: near is a small angle; False: a small Euclidean distance
    returns  bool (B, T)  True where, among the real inputs of its sentence, the nearest is the one
                          at the same position; False in the padding. On a tie, either answer is
                          right
    Refuses a mask that is not bool.
    Source: Brunner et al. (2020), section 4.

    >>> inputs, mask = torch.eye(3).unsqueeze(0), torch.ones(1, 3).bool()
    >>> token_identifiability(inputs[:, [0, 2, 1]], inputs, mask)
    tensor([[ True, False, False]])
    """
    demand.masks(mask=mask)
    if cosine:
        hidden, inputs = F.normalize(hidden, dim=-1), F.normalize(inputs, dim=-1)
    far = (hidden.unsqueeze(2) - inputs.unsqueeze(1)).norm(dim=-1)  # (B, T, T)
    far = far.masked_fill(~mask.unsqueeze(1), torch.inf)
    own = torch.arange(hidden.shape[1], device=hidden.device)  # (T,)
    return (far.argmin(dim=-1) == own) & mask


class HiddenTokenAttribution(nn.Module):
    """Tell how much of each input token is in each vector that an encoder returns.

    encoder  a module from (B, T, d_model) to the same, or a dict of the arguments of an `Encoder`

    Source: Brunner et al. (2020), section 5.
    """

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder if isinstance(encoder, nn.Module) else Encoder(**encoder)

    def forward(self, x):
        """Compare the sizes of derivatives.

        x        (B, T, d_model)  sentences without padding
        returns  (B, T, T)  entry (i, j): the size of the derivative of hidden vector i with respect
                            to input vector j, divided by the sum over all j. The size of the
                            (d_model, d_model) numbers of a derivative is the root of the sum of
                            their squares
        """
        # exercise: about 7 lines
        x = x.detach().requires_grad_()
        hidden, rows = self.encoder(x), []
        for vector in hidden.unbind(dim=1):  # (B, d_model)
            squares = 0.0
            for feature in vector.unbind(dim=1):  # (B,); a sentence depends on itself alone
                (gradient,) = torch.autograd.grad(feature.sum(), x, retain_graph=True)
                squares = squares + gradient.square().sum(dim=-1)  # (B, T)
            rows.append(squares.sqrt())
        sizes = torch.stack(rows, dim=1)  # (B, T, T)
        return sizes / sizes.sum(dim=-1, keepdim=True)


class HeadImportance(Explained):
    """Tell how strongly the loss reacts to a small change of each head's gate."""

    def forward(self, source, target):
        """Differentiate the loss with respect to gates of 1.

        source, target  (B, T_k), (B, T_q)  ids, filled up with PAD
        returns         {name of an attention: (H,)}  for each head, the mean over the sentences of
                        the size, without its sign, of the derivative of the sentence's loss with
                        respect to the head's gate. The loss of a sentence is the sum of -log p over
                        its real tokens
        Source: Michel et al. (2019), equation 2.
        """
        gates = self.gates(len(source))  # {name: (B, H)}, as head_masks of `watch_attention`
        # exercise: about 4 lines
        with watch_attention(self.model, gates):
            log_p = self.log_p(source, target)  # (B, T_q)
        loss = -log_p.masked_fill(target == PAD, 0.0).sum()
        gradients = torch.autograd.grad(loss, list(gates.values()))  # (B, H) each
        return {
            name: gradient.abs().mean(dim=0)
            for name, gradient in zip(gates, gradients, strict=True)
        }


def induction_score(weights, tokens):
    """Measure how much weight each head puts right after earlier occurrences of a token.

    weights  (B, H, T, T)  of a causal self-attention: 0 where the key is later than the query
    tokens   (B, T)  ids, without padding; at least one of them repeats
    returns  (H,)  for a query whose token occurred before, once or several times: the sum of its
                   weights on the positions right after these earlier occurrences. Of this the mean
                   over all such queries of all sentences
    Source: Olsson et al. (2022), who call it the prefix-matching score.

    >>> weights = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.1, 0.7, 0.2]])
    >>> induction_score(weights.view(1, 1, 3, 3), torch.tensor([[5, 8, 5]]))  # 8 came after 5
    tensor([0.7000])
    """
    # exercise: about 4 lines
    same = tokens.unsqueeze(2) == tokens[:, :-1].unsqueeze(1)  # (B, T, T - 1): query, token before
    same = same.tril(-1)  # it stood earlier
    looked = (weights[..., 1:] * same.unsqueeze(1)).sum(dim=-1)  # (B, H, T)
    return looked.sum(dim=(0, 2)) / same.any(dim=-1).sum()
