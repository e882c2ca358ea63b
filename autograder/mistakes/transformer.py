"""Wrong and right answers to the exercises of lesson 10."""

import copy
import functools
import math

import torch
from torch import nn
from torch.nn import functional as F

from attention.multi_head_attention import attention_parameters
from attention.sequence_to_sequence import shift_right
from attention.tokens_and_positions import embed, sinusoidal_positions
from attention.transformer_blocks import DecoderLayer, EncoderLayer
from autograder.checking.toolbox.registry import alternative, careless, mistake

PAD, BOS, EOS = 0, 1, 2


def _past(tokens):
    T = tokens.shape[1]
    return torch.ones(T, T, dtype=torch.bool, device=tokens.device).tril()


def _real(tokens):
    return (tokens != PAD)[:, None]


@mistake(
    "masks_from_tokens",
    hint="The target mask lets positions see the future. It needs both: no padding, and nothing "
    "that comes later.",
)
def forgets_the_future(source, target):
    return _real(source), _real(target).expand(-1, target.shape[1], -1)


@mistake(
    "masks_from_tokens",
    hint="The target mask lets positions see padding. In a batch, targets are padded too.",
)
def forgets_the_targets_padding(source, target):
    return _real(source), _past(target).expand(len(target), -1, -1)


@mistake(
    "masks_from_tokens",
    hint="The masks are inverted: True marks what may be seen, not what is hidden.",
)
def inverts_the_masks(source, target):
    return ~_real(source), ~(_real(target) & _past(target))


@mistake(
    "masks_from_tokens",
    hint="The target mask allows what one of the two conditions allows. Both must hold.",
)
def joins_by_or(source, target):
    return _real(source), _real(target) | _past(target)


@mistake(
    "masks_from_tokens",
    hint="The past is on the wrong side of the diagonal: rows are the positions that look, columns "
    "those that are looked at.",
)
def looks_ahead(source, target):
    return _real(source), _real(target) & _past(target).T


@mistake(
    "masks_from_tokens",
    hint="A position cannot see itself. The diagonal belongs to the past: what the decoder reads "
    "at a position is already the token before the one it writes.",
)
def hides_the_present(source, target):
    return _real(source), _real(target) & _past(target).tril(-1)


@mistake(
    "masks_from_tokens",
    hint="The source mask is (B, T_k). Between the two it needs an axis of length 1 for the "
    "queries, or (B, T_q, T_k) scores cannot use it.",
)
def has_no_axis_for_queries(source, target):
    return source != PAD, _real(target) & _past(target)


@mistake(
    "masks_from_tokens",
    hint="These say which tokens are no padding, (B, T) each. A mask has an axis for the queries, "
    "too, and the target must not see its future.",
)
def compares_with_pad_only(source, target):
    return source != PAD, target != PAD


@mistake(
    "masks_from_tokens",
    hint="The new axis is the last one: (B, T, 1) hides rows, the positions that look. Padding "
    "should not be looked at: hide columns.",
)
def hides_rows(source, target):
    return (source != PAD)[:, :, None], (target != PAD)[:, :, None] & _past(target)


HIDDEN_ROWS = (
    "In the target mask the rows of padding are hidden. Hide its columns: nobody looks at padding. "
    "What padding looks at does no harm, since the loss leaves it out."
)


@mistake("masks_from_tokens", hint=HIDDEN_ROWS)
def hides_rows_of_the_target(source, target):
    return _real(source), (target != PAD)[:, :, None] & _past(target)


@mistake("masks_from_tokens", hint=HIDDEN_ROWS)
def hides_rows_and_columns(source, target):
    return _real(source), _real(target) & (target != PAD)[:, :, None] & _past(target)


@mistake(
    "masks_from_tokens",
    hint="The source mask is causal too. The encoder may look both ways: the source is all there "
    "from the beginning.",
)
def makes_the_source_causal(source, target):
    return _real(source) & _past(source), _real(target) & _past(target)


@mistake(
    "masks_from_tokens",
    hint="EOS is hidden as well. Only PAD is no token: EOS is read and may be looked at.",
)
def hides_eos(source, target):
    source_mask, target_mask = _real(source), _real(target) & _past(target)
    return source_mask & (source != EOS)[:, None], target_mask & (target != EOS)[:, None]


@alternative("masks_from_tokens")
def compares_positions(source, target):
    T = torch.arange(target.shape[1], device=target.device)
    return source.ne(PAD).unsqueeze(-2), (T[:, None] >= T) & target.ne(PAD).unsqueeze(-2)


@alternative("masks_from_tokens")
def fills_in_loops(source, target):
    B, T = target.shape
    allowed = torch.zeros(B, T, T, dtype=torch.bool, device=target.device)
    for b in range(B):
        for i in range(T):
            allowed[b, i, : i + 1] = target[b, : i + 1] != PAD
    return torch.stack([row != PAD for row in source]).unsqueeze(1), allowed


@careless("masks_from_tokens")
def makes_the_triangle_on_the_cpu(source, target):
    T = target.shape[1]
    return _real(source), _real(target) & torch.ones(T, T).tril().bool()


@careless("masks_from_tokens")
def fills_zeros_on_the_cpu(source, target):
    B, T = target.shape
    allowed = torch.zeros(B, T, T, dtype=torch.bool)
    for b in range(B):
        for i in range(T):
            allowed[b, i, : i + 1] = target[b, : i + 1] != PAD
    return _real(source), allowed


def _counted(places, d_model, like):
    """Sinusoids of some places, counted in float32 or wider, in another tensor's dtype."""
    wide = torch.float64 if like.dtype == torch.float64 else torch.float32
    return sinusoidal_positions(places.to(wide), d_model).to(like.dtype)


class _Front(nn.Module):
    """A right Translator in small methods; a mistake overrides what it gets wrong."""

    def __init__(self, source_size, target_size, d_model, n_heads, d_ff, dropout=0.1, tied="none"):
        super().__init__()
        if tied not in ("none", "target", "all"):
            raise ValueError(f"tied={tied!r} is none of none, target, all")
        if tied == "all" and source_size != target_size:
            raise ValueError(f"tied: source_size={source_size} is not target_size={target_size}")
        self.source_embedding = nn.Embedding(source_size, d_model)
        self.target_embedding = nn.Embedding(target_size, d_model)
        self.generator = nn.Linear(d_model, target_size, bias=False)
        for table in (self.source_embedding, self.target_embedding, self.generator):
            nn.init.normal_(table.weight, std=d_model**-0.5)
        self.encoder = EncoderLayer(d_model, n_heads, d_ff, dropout)
        self.decoder = DecoderLayer(d_model, n_heads, d_ff, dropout)
        self.dropout = nn.Dropout(dropout)
        self.tie(tied)

    def tie(self, tied):
        if tied != "none":
            self.generator.weight = self.target_embedding.weight
        if tied == "all":
            self.source_embedding.weight = self.target_embedding.weight

    def places(self, T, d_model, like):
        return _counted(torch.arange(T, device=like.device), d_model, like)

    def rows(self, tokens, embedding):
        return embed(tokens, embedding.weight)

    def embed(self, tokens, embedding):
        x = self.rows(tokens, embedding)
        return self.dropout(x + self.places(x.shape[1], x.shape[2], x))

    def read(self, target):
        return shift_right(target)

    def encode(self, source, source_mask):
        return self.encoder(self.embed(source, self.source_embedding), source_mask)

    def decode(self, read, memory, target_mask, source_mask):
        y = self.embed(read, self.target_embedding)
        return self.generator(self.decoder(y, memory, target_mask, source_mask))

    def forward(self, source, target, source_mask, target_mask):
        memory = self.encode(source, source_mask)
        return self.decode(self.read(target), memory, target_mask, source_mask)


@mistake(
    "Translator",
    hint="The target is not shifted: at each position the decoder reads the very token that it "
    "should say. In training the loss falls to 0, and afterwards the model can do nothing.",
    earns=("tied tables", "dropout on the embeddings"),
)
class ReadsTheTargetItself(_Front):
    def read(self, target):
        return target


@mistake(
    "Translator",
    hint="The target is shifted to the left: the decoder reads the token after the one it should "
    "say. It should read the one before, and BOS at first.",
)
class ShiftsToTheLeft(_Front):
    def read(self, target):
        return torch.cat([target[:, 1:], torch.full_like(target[:, :1], PAD)], 1)


@mistake(
    "Translator",
    hint="The target is shifted twice: `shift_right` puts BOS in front and drops the last column "
    "by itself.",
)
class ShiftsTwice(_Front):
    def read(self, target):
        return shift_right(shift_right(target))


@mistake(
    "Translator",
    hint="√d_model is missing on the embeddings: the positions are too loud beside the tokens.",
    earns=("tied tables", "dropout on the embeddings"),
)
class ForgetsTheRoot(_Front):
    def rows(self, tokens, embedding):
        return embedding(tokens)


@mistake(
    "Translator",
    hint="The embeddings are multiplied by d_model, not by its square root.",
)
class ForgetsToTakeTheRoot(_Front):
    def rows(self, tokens, embedding):
        return embedding(tokens) * embedding.weight.shape[1]


@mistake("Translator", hint="The embeddings are divided by √d_model. They are multiplied by it.")
class DividesByTheRoot(_Front):
    def rows(self, tokens, embedding):
        return embedding(tokens) / math.sqrt(embedding.weight.shape[1])


@mistake(
    "Translator",
    hint="The positions are scaled by √d_model as well. Only the tokens' rows are; then the "
    "positions are added.",
)
class ScalesThePositions(_Front):
    def places(self, T, d_model, like):
        return super().places(T, d_model, like) * math.sqrt(d_model)


@mistake(
    "Translator",
    hint="The positions are missing: without them the model cannot tell one order of the words "
    "from another.",
)
class ForgetsThePositions(_Front):
    def places(self, T, d_model, like):
        return 0.0


@mistake(
    "Translator",
    hint="These are bare rows of the table: they are multiplied by √d_model, and the positions are "
    "added.",
)
class UsesBareRows(_Front):
    def embed(self, tokens, embedding):
        return self.dropout(embedding(tokens))


@mistake("Translator", hint="Positions are counted from 1. They begin at 0.")
class CountsFromOne(_Front):
    def places(self, T, d_model, like):
        return _counted(torch.arange(1, T + 1, device=like.device), d_model, like)


@mistake(
    "Translator",
    hint="The decoder looks at the embedded source instead of the encoder's output: all the work "
    "of the encoder is thrown away.",
)
class SkipsTheEncoder(_Front):
    def encode(self, source, source_mask):
        return self.embed(source, self.source_embedding)


@mistake(
    "Translator",
    hint="The target is looked up in the source's table. Two languages, two embeddings.",
)
class ReadsWithTheSourcesTable(_Front):
    def decode(self, read, memory, target_mask, source_mask):
        y = self.embed(read, self.source_embedding)
        return self.generator(self.decoder(y, memory, target_mask, source_mask))


@mistake(
    "Translator",
    hint="The source is looked up in the target's table. Two languages, two embeddings.",
)
class EncodesWithTheTargetsTable(_Front):
    def encode(self, source, source_mask):
        return self.encoder(self.embed(source, self.target_embedding), source_mask)


@mistake(
    "Translator",
    hint="The embeddings pass through dropout after eval(), too. `F.dropout` does not know the "
    "mode; self.dropout does.",
    earns=("without padding", "with padding", "tied tables"),
)
class DropsInEvaluation(_Front):
    def embed(self, tokens, embedding):
        x = self.rows(tokens, embedding)
        return F.dropout(x + self.places(x.shape[1], x.shape[2], x), self.dropout.p)


@mistake(
    "Translator",
    hint="The masks are exchanged in the decoder: the source's mask hides target positions, and "
    "the other way round.",
    earns=("without padding", "tied tables", "dropout on the embeddings"),
)
class ExchangesTheMasks(_Front):
    def decode(self, read, memory, target_mask, source_mask):
        return super().decode(read, memory, source_mask, target_mask)


@mistake(
    "Translator",
    hint="The mask of the source is used on the target as well. Each sequence has padding of its "
    "own.",
)
class MasksTheTargetLikeTheSource(_Front):
    def decode(self, read, memory, target_mask, source_mask):
        return super().decode(read, memory, source_mask, source_mask)


@mistake(
    "Translator",
    hint="The decoder gets no mask for the source, so that it attends to padding in the "
    "cross-attention.",
)
class AttendsToSourcePadding(_Front):
    def decode(self, read, memory, target_mask, source_mask):
        return super().decode(read, memory, target_mask, None)


@mistake("Translator", hint="The encoder gets no mask: it attends to padding.")
class EncodesWithPadding(_Front):
    def encode(self, source, source_mask):
        return super().encode(source, None)


@mistake(
    "Translator",
    hint="No mask is passed on, neither to the encoder nor to the decoder.",
    earns=("without padding", "tied tables", "dropout on the embeddings"),
)
class IgnoresAllMasks(_Front):
    def encode(self, source, source_mask):
        return super().encode(source, None)

    def decode(self, read, memory, target_mask, source_mask):
        return super().decode(read, memory, None, None)


@mistake("Translator", hint="The decoder gets no target_mask.")
class IgnoresTheTargetMask(_Front):
    def decode(self, read, memory, target_mask, source_mask):
        return super().decode(read, memory, None, source_mask)


@mistake(
    "Translator",
    hint="This is the decoder's output, d_model features for each token. The generator makes "
    "scores of it, one for each token of the vocabulary.",
)
class ForgetsTheGenerator(_Front):
    def decode(self, read, memory, target_mask, source_mask):
        y = self.embed(read, self.target_embedding)
        return self.decoder(y, memory, target_mask, source_mask)


@mistake(
    "Translator",
    hint="These are probabilities. The scores go out as they are: the loss has its own softmax.",
)
class ReturnsProbabilities(_Front):
    def decode(self, *inputs):
        return super().decode(*inputs).softmax(-1)


@mistake(
    "Translator",
    hint="The generator has a table of its own although it was asked to be tied. An equal copy is "
    "not enough: after the first step of training it would differ. Make both attributes the same "
    "parameter.",
    earns=("without padding", "with padding", "dropout on the embeddings"),
)
class StaysUntied(_Front):
    def tie(self, tied):
        pass


@mistake(
    "Translator",
    hint='The tables are tied although tied="none" asks for three.',
    earns=("without padding", "with padding", "dropout on the embeddings"),
)
class AlwaysTies(_Front):
    def tie(self, tied):
        super().tie("target")


@mistake(
    "Translator",
    hint="With tied=\"target\" the generator should share the target's table, not the source's: it "
    "scores target tokens.",
)
class TiesToTheSource(_Front):
    def tie(self, tied):
        if tied != "none":
            self.generator.weight = self.source_embedding.weight
        if tied == "all":
            self.target_embedding.weight = self.source_embedding.weight


@mistake(
    "Translator",
    hint='With tied="all" only two of the three tables are one. All three should be: both '
    "embeddings and the generator.",
)
class LeavesTheSourceOut(_Front):
    def tie(self, tied):
        super().tie("none" if tied == "none" else "target")


@mistake(
    "Translator",
    hint="The embeddings do not pass through dropout. It comes last, after the positions.",
    earns=("without padding", "with padding", "tied tables"),
)
class KeepsAllEmbeddings(_Front):
    def embed(self, tokens, embedding):
        x = self.rows(tokens, embedding)
        return x + self.places(x.shape[1], x.shape[2], x)


@mistake(
    "Translator",
    hint="The embeddings pass through dropout before the positions are added. It comes last.",
)
class DropsBeforeThePositions(_Front):
    def embed(self, tokens, embedding):
        x = self.dropout(self.rows(tokens, embedding))
        return x + self.places(x.shape[1], x.shape[2], x)


@mistake(
    "Translator", hint="The embeddings pass through dropout twice. Once, at the end, is enough."
)
class DropsTheEmbeddingsTwice(_Front):
    def embed(self, tokens, embedding):
        return self.dropout(super().embed(tokens, embedding))


@mistake(
    "Translator",
    hint="The rows pass through dropout before the positions are added, and once more after it. "
    "Only the last one belongs there.",
)
class DropsRowsAndSums(_Front):
    def rows(self, tokens, embedding):
        return self.dropout(super().rows(tokens, embedding))


@mistake("Translator", hint="The scores pass through dropout. Nothing follows the generator.")
class DropsTheScores(_Front):
    def decode(self, *inputs):
        return self.dropout(super().decode(*inputs))


@mistake(
    "Translator",
    hint="The memory passes through dropout. The encoder has finished it; only embeddings are "
    "dropped here.",
)
class DropsTheMemory(_Front):
    def encode(self, source, source_mask):
        return self.dropout(super().encode(source, source_mask))


@mistake(
    "Translator",
    hint="These are logarithms of probabilities. The scores go out as they are: the loss has its "
    "own softmax.",
)
class ReturnsLogProbabilities(_Front):
    def decode(self, *inputs):
        return super().decode(*inputs).log_softmax(-1)


@mistake("Translator", hint="The target is read with EOS in front. It begins with BOS.")
class BeginsWithEos(_Front):
    def read(self, target):
        return torch.cat([torch.full_like(target[:, :1], EOS), target[:, :-1]], 1)


@mistake(
    "Translator",
    hint="The last token of the target has come to the front. The first thing that is read is BOS.",
)
class RollsTheTarget(_Front):
    def read(self, target):
        return target.roll(1, 1)


@mistake(
    "Translator",
    hint="The positions are float32 whatever the rows are. What is added to the rows should have "
    "their dtype.",
)
class CountsInWholeNumbers(_Front):
    def places(self, T, d_model, like):
        return sinusoidal_positions(torch.arange(T, device=like.device), d_model)


@alternative("Translator")
class CountsInFloat32First(_Front):
    def places(self, T, d_model, like):
        places = torch.arange(T, dtype=torch.float32, device=like.device)
        return sinusoidal_positions(places, d_model).to(like)


@alternative("Translator")
class CountsInTheDtypeOfTheRows(_Front):
    def places(self, T, d_model, like):
        return sinusoidal_positions(torch.arange(T, dtype=like.dtype, device=like.device), d_model)


@alternative("Translator")
class TiesTheOtherWayRound(_Front):
    def tie(self, tied):
        if tied in ("target", "all"):
            self.target_embedding.weight = self.generator.weight
        if tied == "all":
            self.source_embedding.weight = self.generator.weight


@alternative("Translator")
class WritesAllInForward(_Front):
    def forward(self, source, target, source_mask, target_mask):
        begin = target.new_full((len(target), 1), BOS)
        vectors = []
        pairs = (source, self.source_embedding), (torch.hstack([begin, target]), None)
        for tokens, embedding in pairs:
            tokens = tokens if embedding is not None else tokens[:, :-1]
            table = (embedding or self.target_embedding).weight
            scaled = table[tokens] * table.shape[1] ** 0.5
            place = torch.arange(tokens.shape[1], device=table.device)
            vectors.append(self.dropout(scaled + _counted(place, table.shape[1], table)))
        memory = self.encoder(vectors[0], source_mask)
        y = self.decoder(vectors[1], memory, mask=target_mask, memory_mask=source_mask)
        return y @ self.generator.weight.T


@careless("Translator")
class CountsOnTheCpu(_Front):
    def places(self, T, d_model, like):
        return _counted(torch.arange(T), d_model, like)


@careless("Translator")
class MakesBosOnTheCpu(_Front):
    def read(self, target):
        return torch.cat([torch.full((len(target), 1), BOS), target[:, :-1]], 1)


class _Stack(nn.Module):
    """A right Encoder in small methods."""

    kind = EncoderLayer

    def __init__(self, n_layers, d_model, n_heads, d_ff, dropout=0.1, pre_norm=True, fused=False):
        super().__init__()
        self.pre_norm = pre_norm
        self.layers = self.make(n_layers, (d_model, n_heads, d_ff, dropout, pre_norm, fused))
        self.end(d_model)

    def make(self, n_layers, sizes):
        return nn.ModuleList(self.kind(*sizes) for _ in range(n_layers))

    def end(self, d_model):
        self.norm = nn.LayerNorm(d_model) if self.pre_norm else nn.Identity()

    def forward(self, x, *others):
        for layer in self.layers:
            x = layer(x, *others)
        return self.norm(x)


class SharesOneLayer(_Stack):
    def make(self, n_layers, sizes):
        return nn.ModuleList([self.kind(*sizes)] * n_layers)


class KeepsAPlainList(_Stack):
    def make(self, n_layers, sizes):
        return [self.kind(*sizes) for _ in range(n_layers)]


class MakesPostNormLayers(_Stack):
    def make(self, n_layers, sizes):
        return nn.ModuleList(self.kind(*sizes[:4]) for _ in range(n_layers))


class LeavesDropoutOut(_Stack):
    def make(self, n_layers, sizes):
        return super().make(n_layers, (*sizes[:3], 0.0, *sizes[4:]))


class HasNoFinalNorm(_Stack):
    def end(self, d_model):
        self.norm = nn.Identity()


class SkipsTheFinalNorm(_Stack):
    def forward(self, x, *others):
        for layer in self.layers:
            x = layer(x, *others)
        return x


class AlwaysNorms(_Stack):
    def end(self, d_model):
        self.norm = nn.LayerNorm(d_model)


class NormsAfterEveryLayer(_Stack):
    def forward(self, x, *others):
        for layer in self.layers:
            x = self.norm(layer(x, *others))
        return x


class NormsBeforeTheLayers(_Stack):
    def forward(self, x, *others):
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x, *others)
        return x


class FeedsTheInputAgain(_Stack):
    def forward(self, x, *others):
        for layer in self.layers:
            y = layer(x, *others)
        return self.norm(y)


class StopsAfterOneLayer(_Stack):
    def forward(self, x, *others):
        for layer in self.layers:
            return self.norm(layer(x, *others))
        return x


class GoesBackwards(_Stack):
    def forward(self, x, *others):
        for layer in reversed(self.layers):
            x = layer(x, *others)
        return self.norm(x)


class AddsTheInputAgain(_Stack):
    def forward(self, x, *others):
        for layer in self.layers:
            x = x + layer(x, *others)
        return self.norm(x)


_WRONG = {
    SharesOneLayer: "The same layer object stands n_layers times in the list: all layers share "
    "one set of weights, and N=6 costs no more parameters than N=1. Make a new layer each time.",
    KeepsAPlainList: "The layers are in a plain Python list. PyTorch does not look into it, so "
    "they are never trained or moved: use nn.ModuleList.",
    HasNoFinalNorm: "The final norm is missing. In a pre-norm stack nothing has normalised the "
    "sum that comes out of the last layer.",
    SkipsTheFinalNorm: "The final norm exists, but the output does not pass through it.",
    AlwaysNorms: "There is a final norm also with pre_norm=False. Post-norm layers end with a "
    "norm already.",
    NormsAfterEveryLayer: "The final norm is applied after every layer. It stands once, after "
    "the last.",
    NormsBeforeTheLayers: "The final norm is applied to what goes into the first layer, and what "
    "comes out of the last one is not normalised. It is the last step of the stack.",
    MakesPostNormLayers: "The layers are post-norm although pre_norm=True: hand all sizes on.",
    LeavesDropoutOut: "The layers get no dropout.",
    FeedsTheInputAgain: "Every layer gets the input of the stack, so only the last one counts. "
    "Each should get what the one before has made.",
    StopsAfterOneLayer: "Only the first layer is used: the function returns inside the loop.",
    GoesBackwards: "The layers are used in reverse order.",
    AddsTheInputAgain: "x is added to what each layer returns. The layers have their residuals "
    "inside.",
}


_EARNED = {
    HasNoFinalNorm: ("post-norm", "with a mask and dropout"),
    MakesPostNormLayers: ("post-norm", "with a mask and dropout"),
    AlwaysNorms: ("pre-norm", "with a mask and dropout"),
    LeavesDropoutOut: ("pre-norm", "post-norm"),
}


@mistake(
    "Encoder",
    hint="The layers get no mask: they attend to padding.",
    earns=("pre-norm", "post-norm"),
)
class ForgetsTheMask(_Stack):
    def forward(self, x, mask=None):
        return super().forward(x)


@mistake(
    "Encoder",
    hint="Only the first layer gets the mask. All of them see the padding.",
    earns=("pre-norm", "post-norm"),
)
class MasksTheFirstLayerOnly(_Stack):
    def forward(self, x, mask=None):
        for number, layer in enumerate(self.layers):
            x = layer(x, None if number else mask)
        return self.norm(x)


for _wrong, _hint in _WRONG.items():
    mistake("Encoder", hint=_hint, earns=_EARNED.get(_wrong))(_wrong)


@alternative("Encoder")
class AppendsLayers(_Stack):
    def make(self, n_layers, sizes):
        layers = nn.ModuleList()
        while len(layers) < n_layers:
            layers.append(EncoderLayer(*sizes))
        return layers

    def end(self, d_model):
        if self.pre_norm:
            self.norm = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        for number in range(len(self.layers)):
            x = self.layers[number](x, mask=mask)
        return self.norm(x) if self.pre_norm else x


@alternative("Encoder")
class CopiesAndReduces(_Stack):
    def make(self, n_layers, sizes):
        first = EncoderLayer(*sizes)
        return nn.ModuleList([copy.deepcopy(first) for _ in range(n_layers)])

    def end(self, d_model):
        self.norm = nn.LayerNorm(d_model) if self.pre_norm else None

    def forward(self, x, mask=None):
        x = functools.reduce(lambda x, layer: layer(x, mask), self.layers, x)
        return x if self.norm is None else self.norm(x)


def _all_of(x):
    """A mask that hides nothing, made on the CPU."""
    return torch.ones(x.shape[0], 1, x.shape[1], dtype=torch.bool)


def _sentence_by_sentence(x):
    """The same numbers, in a tensor that is made on the CPU and in float32."""
    result = torch.zeros(x.shape)
    for b in range(len(x)):
        result[b] = x[b]
    return result


@careless("Encoder")
class MakesAMaskOnTheCpu(_Stack):
    def forward(self, x, mask=None):
        return super().forward(x, _all_of(x) if mask is None else mask)


@careless("Encoder")
class FillsAResultOnTheCpu(_Stack):
    def forward(self, x, mask=None):
        return _sentence_by_sentence(super().forward(x, mask))


def _append(read, token):
    return torch.cat([read, token[:, None]], 1)


def _ended(read):
    return (read[:, -1] == EOS) | (read[:, -1] == PAD)


@mistake(
    "append_best",
    hint="The scores after the first token are used. The row has grown: those after its last token "
    "say what comes next.",
)
def uses_the_first_scores(read, logits):
    return _append(read, logits[:, 0].argmax(1).masked_fill(_ended(read), PAD))


@mistake(
    "append_best",
    hint="The best token after every position is returned, which says again what was read. Only "
    "the last one is new.",
)
def says_everything_again(read, logits):
    return logits.argmax(2)


@mistake(
    "append_best",
    hint="A row that has ended is continued. After EOS only PAD may follow.",
)
def never_ends(read, logits):
    return _append(read, logits[:, -1].argmax(1))


@mistake(
    "append_best",
    hint="A row that ended with EOS gets one PAD and then goes on. PAD at the end says that it has "
    "ended, too.",
)
def ends_once(read, logits):
    longer = []
    for row, scores in zip(read, logits, strict=True):
        new = PAD if row[-1] == EOS else int(scores[-1].argmax())
        longer.append([*row.tolist(), new])
    return torch.tensor(longer, device=read.device)


@mistake(
    "append_best",
    hint="A row that has ended gets EOS again and again. The first EOS is enough: then PAD.",
)
def fills_up_with_eos(read, logits):
    return _append(read, logits[:, -1].argmax(1).masked_fill(_ended(read), EOS))


@mistake(
    "append_best",
    hint="One token for each row is (B,). To be joined to (B, T) it needs a second axis: (B, 1).",
)
def forgets_the_axis(read, logits):
    return torch.cat([read, logits[:, -1].argmax(1).masked_fill(_ended(read), PAD)], 1)


@mistake("append_best", hint="Only the new tokens are returned. Put them after what was read.")
def returns_the_new_token_only(read, logits):
    return logits[:, -1].argmax(1, keepdim=True).masked_fill(_ended(read)[:, None], PAD)


@mistake("append_best", hint="The least probable token is chosen.")
def takes_the_worst(read, logits):
    return _append(read, logits[:, -1].argmin(1).masked_fill(_ended(read), PAD))


@mistake("append_best", hint="The new token stands in front. It belongs at the end.")
def puts_it_in_front(read, logits):
    new = logits[:, -1].argmax(1, keepdim=True).masked_fill(_ended(read)[:, None], PAD)
    return torch.cat([new, read], 1)


@mistake(
    "append_best",
    hint="argmax runs along the rows of the batch: it says which row scores a token highest. Which "
    "axis holds the vocabulary?",
)
def asks_the_batch(read, logits):
    best = logits[:, -1].argmax(0)[: len(read)]
    return _append(read, best.masked_fill(_ended(read), PAD))


@alternative("append_best")
def loops_over_rows(read, logits):
    rows = []
    for row, scores in zip(read.tolist(), logits.tolist(), strict=True):
        last = scores[-1]
        rows.append([*row, PAD if row[-1] in (EOS, PAD) else last.index(max(last))])
    return torch.tensor(rows, device=read.device)


@alternative("append_best")
def looks_for_any_end(read, logits):
    ended = (read == EOS).any(1) | (read == PAD).any(1)
    best = logits[:, -1, :].topk(1).indices
    return torch.hstack([read, torch.where(ended[:, None], PAD, best)])


@careless("append_best")
def builds_the_rows_on_the_cpu(read, logits):
    rows = []
    for row, scores in zip(read.tolist(), logits, strict=True):
        rows.append([*row, PAD if row[-1] in (EOS, PAD) else int(scores[-1].argmax())])
    return torch.tensor(rows)


@careless("append_best")
def writes_into_the_scores(read, logits):
    ended = _ended(read)
    logits[ended, -1] = -torch.inf
    logits[ended, -1, PAD] = 0.0
    return _append(read, logits[:, -1].argmax(1))


def _last(read):
    return read[:, -1].tolist()


def _ends(read, logits):
    """Whether PAD scores highest in each row that ended before its last id."""
    best = logits[:, -1].argmax(dim=1).tolist()
    return all(token == PAD for end, token in zip(_last(read), best, strict=True) if end == PAD)


@mistake(
    "break_append_best",
    hint="No row has ended. Then both write the best token everywhere.",
    where=lambda read, logits: not {EOS, PAD} & set(_last(read)),
)
def all_rows_go_on():
    return torch.tensor([[1, 5, 4], [1, 6, 3]]), torch.eye(7)[None, :3].repeat(2, 1, 1)


@mistake(
    "break_append_best",
    hint="The rows that have ended did so just now: their last id is EOS, and the answer looks for "
    "EOS. What does such a row look like one step later?",
    where=lambda read, logits: EOS in _last(read) and PAD not in _last(read),
)
def has_just_ended():
    return torch.tensor([[1, 5, 2], [1, 6, 3]]), torch.eye(7)[None, 2:5].repeat(2, 1, 1)


@mistake(
    "break_append_best",
    hint="A row ends in PAD, and the scores after it happen to be highest for PAD: the answer gets "
    "it right by luck. (Of equal scores argmax takes the first.)",
    where=lambda read, logits: PAD in _last(read) and _ends(read, logits),
)
def scores_are_all_equal():
    return torch.tensor([[1, 2, 0]]), torch.zeros(1, 3, 5)


@alternative("break_append_best")
def one_row_is_two_steps_ahead():
    logits = torch.zeros(2, 4, 9)
    logits[:, :, 7] = 2.0
    return torch.tensor([[1, 5, 2, 0], [1, 6, 3, 3]]), logits


@alternative("break_append_best")
def would_end_again():
    return torch.tensor([[1, 2, 0, 0]]), torch.tensor([[[0.0, 0.0, 1.0]]]).repeat(1, 4, 1)


def _count(
    source_size,
    target_size,
    d_model,
    d_ff,
    n_layers,
    pre_norm=True,
    tied="none",
    bias=True,
    norm=2,
    attentions=3,
    norms=5,
    feed_forwards=2,
    ends=2,
    tables=None,
    columns=2,
    inner=True,
):
    """A right count, unless one of the numbers at the end is given otherwise."""
    attention = attention_parameters(d_model, 1, d_model, bias)
    feed_forward = columns * d_model * d_ff + (d_ff + d_model) * bias * inner
    layers = attentions * attention + feed_forwards * feed_forward + norms * norm * d_model
    if tables is None:
        tables = {"none": source_size + 2 * target_size, "target": source_size + target_size}
        tables = tables.get(tied, target_size)
    return tables * d_model + n_layers * layers + ends * norm * d_model * bool(pre_norm)


@mistake(
    "transformer_parameters",
    hint="The biases are missing: all projections of the attentions and both maps of the "
    "feed-forward network have one.",
    earns=("the tables", "the last norms"),
)
def forgets_the_biases(*sizes, **options):
    return _count(*sizes, **options, bias=False)


@mistake(
    "transformer_parameters",
    hint="The norms are missing: each has a scale and a shift per feature, two norms in an encoder "
    "layer and three in a decoder layer.",
)
def forgets_the_norms(*sizes, **options):
    return _count(*sizes, **options, norms=0, ends=0)


@mistake(
    "transformer_parameters",
    hint="The biases of the feed-forward networks are missing: d_ff of the map up, d_model of the "
    "map back.",
)
def forgets_the_inner_biases(*sizes, **options):
    return _count(*sizes, **options, inner=False)


@mistake(
    "transformer_parameters",
    hint="The generator is counted with a bias. It has none.",
)
def gives_the_generator_a_bias(
    source_size, target_size, d_model, d_ff, n_layers, pre_norm=True, tied="none"
):
    sizes = (source_size, target_size, d_model, d_ff, n_layers, pre_norm, tied)
    return _count(*sizes) + target_size


@mistake("transformer_parameters", hint="Both the biases and the norms are missing.")
def forgets_biases_and_norms(*sizes, **options):
    return _count(*sizes, **options, bias=False, norms=0, ends=0)


@mistake(
    "transformer_parameters",
    hint="A norm has two parameters per feature: a scale and a shift.",
    earns=("the tables",),
)
def gives_norms_a_scale_only(*sizes, **options):
    return _count(*sizes, **options, norm=1)


@mistake(
    "transformer_parameters",
    hint="A decoder layer is counted like an encoder layer. It has a second attention, to the "
    "source, and a norm for it.",
    earns=("the tables", "the last norms"),
)
def forgets_the_cross_attention(*sizes, **options):
    return _count(*sizes, **options, attentions=2, norms=4)


@mistake(
    "transformer_parameters",
    hint="The cross-attention is counted, but not the norm that belongs to it.",
)
def forgets_the_third_norm(*sizes, **options):
    return _count(*sizes, **options, norms=4)


@mistake(
    "transformer_parameters",
    hint="Only one stack is counted. There are an encoder and a decoder.",
)
def counts_the_encoder_only(*sizes, **options):
    return _count(*sizes, **options, attentions=1, norms=2, feed_forwards=1, ends=1)


@mistake(
    "transformer_parameters",
    hint="The feed-forward network has two matrices, one up to d_ff and one back.",
)
def counts_half_of_the_feed_forward(*sizes, **options):
    return _count(*sizes, **options, columns=1)


@mistake(
    "transformer_parameters",
    hint="The two norms after the pre-norm stacks are missing.",
    earns=("the layers", "the tables"),
)
def forgets_the_final_norms(*sizes, **options):
    return _count(*sizes, **options, ends=0)


@mistake(
    "transformer_parameters",
    hint="The final norms are counted also for post-norm stacks, which have none.",
)
def always_counts_final_norms(
    source_size, target_size, d_model, d_ff, n_layers, pre_norm=True, tied="none"
):
    return _count(source_size, target_size, d_model, d_ff, n_layers, True, tied)


@mistake(
    "transformer_parameters",
    hint="The generator's table is missing: with untied tables there are three.",
)
def forgets_the_generator(
    source_size, target_size, d_model, d_ff, n_layers, pre_norm=True, tied="none"
):
    tables = target_size if tied == "all" else source_size + target_size
    sizes = (source_size, target_size, d_model, d_ff, n_layers, pre_norm, tied)
    return _count(*sizes, tables=tables)


@mistake(
    "transformer_parameters",
    hint="All three tables are counted although some of them are one and the same. `tied` says "
    "which.",
)
def counts_tied_tables_again(
    source_size, target_size, d_model, d_ff, n_layers, pre_norm=True, tied="none"
):
    return _count(source_size, target_size, d_model, d_ff, n_layers, pre_norm)


@mistake(
    "transformer_parameters",
    hint='With tied="all" there is a single table, for all three uses.',
    earns=("the layers", "the last norms"),
)
def leaves_two_tables(
    source_size, target_size, d_model, d_ff, n_layers, pre_norm=True, tied="none"
):
    tied = "none" if tied == "none" else "target"
    return _count(source_size, target_size, d_model, d_ff, n_layers, pre_norm, tied)


@mistake("transformer_parameters", hint="The tables of the tokens are missing.")
def forgets_the_tables(*sizes, **options):
    return _count(*sizes, **options, tables=0)


@mistake(
    "transformer_parameters",
    hint="Only one layer on each side is counted: multiply by n_layers.",
)
def counts_one_layer(source_size, target_size, d_model, d_ff, n_layers, pre_norm=True, tied="none"):
    return _count(source_size, target_size, d_model, d_ff, 1, pre_norm, tied)


@mistake(
    "transformer_parameters",
    hint="The result is a float. A count is an int: divide with //.",
    earns=("the layers", "the last norms"),
)
def returns_a_float(*sizes, **options):
    return float(_count(*sizes, **options))


@alternative("transformer_parameters")
def adds_up_real_layers(
    source_size, target_size, d_model, d_ff, n_layers, pre_norm=True, tied="none"
):
    with torch.device("meta"):
        layers = [EncoderLayer(d_model, 1, d_ff), DecoderLayer(d_model, 1, d_ff)]
    inside = sum(p.numel() for layer in layers for p in layer.parameters())
    tables = 0
    tables += 0 if tied == "all" else source_size * d_model
    tables += target_size * d_model
    tables += target_size * d_model if tied == "none" else 0
    return n_layers * inside + tables + (4 * d_model if pre_norm else 0)


@alternative("transformer_parameters")
def has_one_polynomial(
    source_size, target_size, d_model, d_ff, n_layers, pre_norm=True, tied="none"
):
    total = n_layers * (12 * d_model**2 + 4 * d_model * d_ff + 24 * d_model + 2 * d_ff)
    total += 4 * d_model if pre_norm else 0
    shares = {"none": (1, 2), "target": (1, 1), "all": (0, 1)}[tied]
    return total + d_model * (shares[0] * source_size + shares[1] * target_size)


SHORT = "no sentence of the check goes beyond position 256, up to which bfloat16 counts"
EQUIVALENT = {
    "Translator: with one call of `promote_types` left out: wide = x.dtype": SHORT,
    "Translator: without `dtype` in one call of `arange`: positions = torch.arange(x.shape[1], "
    "device=x.device)": "whole numbers give sinusoids in float32: a step in float32 is no mistake",
    "Translator: with two arguments of one call of `promote_types` exchanged: wide = "
    "torch.promote_types(torch.float32, x.dtype)": "the wider of two dtypes has no order",
    "masks_from_tokens: whose result is cut off from the gradient: return (source_mask.detach(), "
    "(target_mask & causal_mask(target.shape[1], target.device)).detach())": "masks are bool",
    "masks_from_tokens: with `source` once where `target` belongs: return (source_mask, "
    "target_mask & causal_mask(target.shape[1], source.device))": "both are on one device",
    "Translator: with the two items of a pair exchanged: if tied in ('all', 'target'): "
    "self.generator.weight = self.target_embedding.weight": "`in` asks for no order",
    "append_best: whose result is cut off from the gradient: return "
    "torch.cat([read, best.unsqueeze(1)], dim=1).detach()": "ids have no gradient",
    "transformer_parameters: with two arguments of one call of `attention_parameters` exchanged: "
    "attention = attention_parameters(d_model, d_model, 1)": "only n_heads * d_head counts",
    "transformer_parameters: with `source_size` once where `target_size` belongs: tables = "
    "rows.get(tied, source_size) * d_model": "where all tables are one, both sizes are equal",
}
