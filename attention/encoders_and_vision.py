"""Lesson 16: encoders that read, for texts and for images."""

import torch
from torch import nn
from torch.nn import functional as F

from attention.masked_attention import masked_attention
from attention.provided import demand
from attention.provided.data.tokens import PAD
from attention.tokens_and_positions import LearnedPositions
from attention.transformer import Encoder

IGNORED = -100  # a wanted token that F.cross_entropy leaves out of its mean


def mean_pooling(x, mask=None):
    """Turn each sequence into one vector: the mean of its real tokens.

    x        (B, T, d_model)  finite numbers, also in the padding
    mask     None, or bool (B, T); True = a real token
    returns  (B, d_model)  zeros for a sequence without a real token

    Refuses a mask that is not bool.

    >>> x, mask = torch.tensor([[[1.0], [3.0], [80.0]]]), torch.tensor([[True, True, False]])
    >>> mean_pooling(x, mask)
    tensor([[2.]])
    """
    demand.masks(mask=mask)
    if mask is None:
        return x.mean(dim=1)
    total = x.masked_fill(~mask.unsqueeze(-1), 0.0).sum(dim=1)  # (B, d_model)
    return total / mask.sum(dim=1, keepdim=True).clamp(min=1)


def attention_pooling(x, query, mask=None):
    """Turn each sequence into one vector: attention with a single query.

    x        (..., T, d_model)  keys and values
    query    (d_model,)         the same for all sequences; usually learned
    mask     None, or bool (..., T); True = may attend
    returns  a pair: context (..., d_model), and weights (..., T); of a sequence that may attend to
             nothing both are zeros

    The scores are divided by √d_model.
    Refuses a mask that is not bool.

    >>> x, query = torch.tensor([[[1.0, 0.0], [3.0, 0.0]]]), torch.tensor([0.0, 5.0])
    >>> attention_pooling(x, query)  # both score 0
    (tensor([[2., 0.]]), tensor([[0.5000, 0.5000]]))
    """
    demand.masks(mask=mask)
    # exercise: about 4 lines
    if mask is not None:
        mask = mask.unsqueeze(-2)  # (..., 1, T): one query
    context, weights = masked_attention(query.unsqueeze(0), x, x, mask, return_weights=True)
    return context.squeeze(-2), weights.squeeze(-2)


class HierarchicalAttention(nn.Module):
    """Turn a document into one vector: words to sentences, sentences to the document.

    d_model  length of the vectors

    The parameters `word_query` and `sentence_query`, (d_model,) each, begin as zeros: every weight
    is the same at first.
    Refuses a d_model below 1, and a mask that is not bool.
    Source: Yang et al. (2016), without their recurrent encoders and their tanh layer below each
    level, and with the division by √d_model.

    >>> document, sentence_weights, word_weights = HierarchicalAttention(6)(torch.zeros(2, 4, 5, 6))
    >>> document.shape, sentence_weights.shape, word_weights.shape
    (torch.Size([2, 6]), torch.Size([2, 4]), torch.Size([2, 4, 5]))
    """

    def __init__(self, d_model):
        super().__init__()
        demand.counts(d_model=d_model)
        self.word_query = nn.Parameter(torch.zeros(d_model))
        self.sentence_query = nn.Parameter(torch.zeros(d_model))

    def forward(self, x, mask=None):
        """Pool twice.

        x        (B, S, T, d_model)  S sentences of T words each, filled up with padding
        mask     None, or bool (B, S, T); True = a real word
        returns  three tensors: documents (B, d_model), sentence_weights (B, S) and
                 word_weights (B, S, T); a sentence without a real word has weight 0
        """
        demand.masks(mask=mask)
        # exercise: about 4 lines
        words = sentences = None
        if mask is not None:
            words = mask.unsqueeze(2)  # (B, S, 1, T)
            sentences = mask.any(dim=-1).unsqueeze(1)  # (B, 1, S)
        x, of_words = masked_attention(self.word_query[None], x, x, words, return_weights=True)
        x = x.squeeze(2)  # (B, S, d_model)
        x, weights = masked_attention(self.sentence_query[None], x, x, sentences, True)
        return x.squeeze(1), weights.squeeze(1), of_words.squeeze(2)


class EncoderClassifier(nn.Module):
    """An encoder-only Transformer: an extra first token collects what decides the class.

    n_classes   how many classes there are
    max_length  the longest sequence, without the extra token

    The others, d_model to fused, are sizes and options of the `Encoder`, which is pre-norm.

    The parts are `cls`, a parameter (d_model,); `positions`, LearnedPositions for 1 + max_length
    places, of which the first is that of the extra token; `encoder`; `head`, a linear layer.
    Refuses a size below 1.
    Source: Devlin et al. (2019), section 3.

    >>> EncoderClassifier(10, 7, d_model=12, n_heads=3, d_ff=20, n_layers=1)(
    ...     torch.zeros(2, 5, 12)
    ... ).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, n_classes, max_length, d_model, n_heads, d_ff, n_layers, dropout=0.1, fused=False
    ):
        super().__init__()
        demand.counts(n_classes=n_classes, max_length=max_length, d_model=d_model)
        self.cls = nn.Parameter(0.02 * torch.randn(d_model))
        self.positions = LearnedPositions(1 + max_length, d_model)
        self.encoder = Encoder(n_layers, d_model, n_heads, d_ff, dropout, fused=fused)
        self.head = nn.Linear(d_model, n_classes)

    def encode(self, x, mask=None):
        """Put `cls` in front, add the positions, and run the encoder.

        A step of `forward`, which alone is called from elsewhere: divide the work as you like.
        """
        # exercise: about 5 lines
        cls = self.cls.expand(len(x), 1, -1)  # (B, 1, d_model)
        x = self.positions(torch.cat([cls, x], dim=1))  # (B, 1 + T, d_model)
        if mask is not None:
            mask = F.pad(mask, (1, 0), value=True).unsqueeze(1)  # (B, 1, 1 + T)
        return self.encoder(x, mask)

    def forward(self, x, mask=None):
        """Score every class, from what the encoder makes of `cls`.

        x        (B, T, d_model)  vectors of the tokens, without positions; T is at most max_length
        mask     None, or bool (B, T); True = a real token. `cls` may be attended to, too
        returns  (B, n_classes)
        """
        # exercise: about 1 line
        return self.head(self.encode(x, mask)[:, 0])


def mask_tokens(tokens, noise, share, mask_id):
    """Hide some tokens of each text, and say which ones are to be guessed.

    tokens   (B, T)  int64  ids, filled up with PAD
    noise    (B, T)  random numbers from [0, 1): a real token is hidden where its own is below share
    share    share of the tokens that are hidden on average, from 0 to 1
    mask_id  the id that replaces a hidden token, and that no text holds
    returns  a pair of (B, T), int64: what the encoder reads; and what it should guess, the true id
             where a token is hidden, and IGNORED, which F.cross_entropy leaves out, elsewhere

    Refuses a share that is not from 0 to 1.
    Source: Devlin et al. (2019), section 3.1, without the tokens that stay as they are or are
    replaced by others.

    >>> mask_tokens(torch.tensor([[7, 5, 9]]), torch.tensor([[0.1, 0.9, 0.3]]), 0.3, mask_id=1)
    (tensor([[1, 5, 9]]), tensor([[   7, -100, -100]]))
    """
    demand.within(0, 1, share=share)
    # exercise: about 2 lines
    hidden = (noise < share) & (tokens != PAD)  # (B, T)
    return tokens.masked_fill(hidden, mask_id), tokens.masked_fill(~hidden, IGNORED)


def patchify(images, size):
    """Cut images into square patches, and turn each into a vector.

    images   (B, C, height, width)
    size     the side of a patch, P
    returns  (B, N, C · P · P)  N = height / P · width / P patches, row by row from the top left;
             the features of a patch: channel by channel, each row by row

    Raises ValueError if P does not divide height and width.
    Also for a size below 1.
    Source: Dosovitskiy et al. (2021), section 3.1.

    >>> patchify(torch.arange(8.0).view(1, 1, 2, 4), size=2)
    tensor([[[0., 1., 4., 5.],
             [2., 3., 6., 7.]]])
    """
    demand.counts(size=size)
    B, C, height, width = images.shape
    if height % size or width % size:
        raise ValueError(f"size={size} does not divide an image of {height} × {width}")
    # exercise: about 3 lines
    x = images.unflatten(3, (-1, size)).unflatten(2, (-1, size))  # (B, C, rows, P, columns, P)
    x = x.permute(0, 2, 4, 1, 3, 5)  # (B, rows, columns, C, P, P)
    return x.flatten(3).flatten(1, 2)  # (B, N, C · P · P)


class VisionTransformer(nn.Module):
    """Classify images whose patches are the tokens.

    image_size  (height, width)
    patch_size  side of a patch, P
    channels    1 for grey, 3 for colours
    others      further arguments of `EncoderClassifier`, by name

    Raises ValueError for a size below 1.
    Source: Dosovitskiy et al. (2021), figure 1.
    """

    def __init__(self, image_size, patch_size, channels, n_classes, d_model, **others):
        super().__init__()
        demand.counts(patch_size=patch_size, channels=channels, d_model=d_model)
        self.patch_size = patch_size
        n_patches = (image_size[0] // patch_size) * (image_size[1] // patch_size)
        self.embedding = nn.Linear(channels * patch_size**2, d_model)
        self.classifier = EncoderClassifier(n_classes, n_patches, d_model, **others)

    def forward(self, images):
        """Score every class: (B, C, height, width) -> (B, n_classes)."""
        x = self.embedding(patchify(images, self.patch_size))  # (B, N, d_model)
        return self.classifier(x)


def blank_each_patch(images, size):
    """Make as many copies of each image as it has patches; in each, one patch is blank.

    images   (B, C, height, width)
    size     the side of a patch, P, which divides height and width
    returns  (B, N, C, height, width)  copy n has zeros in patch n, counted as in `patchify`

    Refuses a size below 1.

    >>> blank_each_patch(torch.ones(1, 1, 1, 3), size=1)[0, :, 0, 0]
    tensor([[0., 1., 1.],
            [1., 0., 1.],
            [1., 1., 0.]])
    """
    demand.counts(size=size)
    height, width = images.shape[2:]
    copies = []
    for top in range(0, height, size):
        for left in range(0, width, size):
            copy = images.clone()
            copy[:, :, top : top + size, left : left + size] = 0
            copies.append(copy)
    return torch.stack(copies, dim=1)  # (B, N, C, height, width)


# Inputs on which a wrong answer shows


def break_patchify():
    """Return an input for which `cuts_by_the_height` gives wrong patches.

    returns  a tuple (images, size), as `patchify` takes them
    """
    return torch.arange(8.0).view(1, 1, 2, 4), 2
