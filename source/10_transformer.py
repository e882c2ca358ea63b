# %% [markdown]
# # 10 · How do the pieces make a translator?
#
# Attention, heads, masks, embeddings, positions, norms, layers: you have all the parts. Now they
# become the Transformer of Vaswani and colleagues (2017), which learns to write numbers in German
# in about a minute.
#
# **After this lesson** you can
# - follow a sentence through the whole model, with the shape at every step,
# - make the **masks** from the tokens, and say which attention gets which,
# - stack layers into an **encoder** and a **decoder**, and shift, embed and score around them,
# - train one, read where its heads look, and say what it loses without positions.
#
# **Time** 80 minutes, ★ 2 more · **Points** 12 · **GPU** not needed · **You need** lessons 02 and
# 05 to 09

# %%
import itertools
import math

import torch
from torch import nn

from autograder import check

# %% [markdown]
# ## One word after the other
# The translator of lesson 03 looks back at all words, but it still *reads* and *writes* with
# recurrent networks, in which each state waits for the one before. In training, how many steps of
# one batch must run one after the other?

# %% demo=true
from attention.experiments import transformer as experiments

torch.set_num_threads(1)  # as fast for small matrices, and much faster beside other programs
experiments.steps_in_a_row()

# %% [markdown]
# The decoder's gain holds only in training, where the target is known: both models *write* letter
# by letter. A second gain: in a Transformer any two positions are one attention apart (lesson 05).
#
# ## Two stacks, and tables around them
# The **encoder** turns the source into vectors that depend on the whole sentence: the *memory*. The
# **decoder** reads the part of the target that is already written, looks at the memory in every
# layer, and scores the next token. Around them stand three tables.
#
# ![Left, the encoder: the source is embedded and passes N times through self-attention and a
# feed-forward network; what leaves the norm after them is the memory. Right, the decoder: the
# target is shifted right, embedded, and passes N times through causal self-attention,
# cross-attention, which reads the memory, and a feed-forward network; the generator scores the next
# tokens. Each of the five sublayers begins with a norm, and a residual connection leads past both
# to a box Add. One more norm stands after each stack. At the arrows: ids have the shape (B, T),
# vectors (B, T, d_model), scores (B, T_q, target_size).](figures/transformer_way.svg)
#
# The drawing is pre-norm, like the model that we will train. The paper's model is post-norm: a norm
# follows each sum, and none stands after the stack.
#
# Attention is used in **three ways**, with different inputs:
#
# | where | queries | keys and values | the mask hides |
# |---|---|---|---|
# | encoder | source | source | padding |
# | decoder, first | target | target | padding and the future |
# | decoder, second: **cross-attention** | target | memory, the encoder's output | padding |
#
# The paper's base model has N = 6 layers on each side, d_model = 512, 8 heads, and d_ff = 2048.
#
# ## Shifted right
# At each position the decoder must predict a letter that it has not yet read. For “zwölf”:

# %%
predicts = ["z", "w", "ö", "l", "f", "EOS"]
print("reads     " + "".join(f"{token:<5}" for token in ["BOS", *predicts[:-1]]))
print("predicts  " + "".join(f"{token:<5}" for token in predicts))

# %% [markdown]
# Position 3 (counting from 0) must predict “l”. It reads “ö”, and may see BOS, “z” and “w” before
# it. In training all positions predict at once. This is the teacher forcing of lesson 02, with its
# `shift_right`.
#
# ## Masks from tokens
# Beside *twenty one*, *twelve* is short: in one batch it is filled up with PAD, and *zwölf*
# likewise. A softmax would give this padding a share of every word's attention.
#
# ### Exercise 10.1 · `masks_from_tokens`
# ●●○ medium · 10 minutes · 2 points
#
# From ids alone, source `(B, T_k)` and the target that the decoder reads, already shifted,
# `(B, T_q)`, make two bool masks, True = may attend: one for looking at the source, and one for the
# target looking at itself. Their shapes are `(B, 1, T_k)` and `(B, T_q, T_q)`. Lesson 06 has
# `causal_mask(T, device)`. (The decoder layers apply it once more, which changes nothing.)
#
# <details><summary>Hint 1 · the idea</summary>
#
# Compare the ids with PAD. For the target, & joins two conditions.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Padding hides *columns* from all queries: `(B, T)` needs an axis of length 1 in the middle.
# `(B, 1, T_q)` and `(T_q, T_q)` broadcast to `(B, T_q, T_q)`.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# Take one target, `torch.tensor([[1, 8, 0]])`. Which columns may its last row see? Print your two
# conditions before you join them.
# </details>

# %%
from attention.masked_attention import causal_mask
from attention.provided.data.tokens import BOS, EOS, PAD

# %% exercise="masks_from_tokens"
from attention.transformer import masks_from_tokens

# %% check="masks_from_tokens" points=2
check.masks_from_tokens(masks_from_tokens)

# %% demo=true
experiments.masks_of_a_batch(masks_from_tokens)

# %% [markdown]
# *Dark cells may be looked at. The number is 12, in a batch beside 21. Left, padding is hidden, for
# all queries alike; right, padding and the future.* The loss ignores the rows of padding.
#
# ## One row for reading, one for writing
# One table has a row for each source token. A second has one for each target token. The third, the
# **generator**, scores each target token by a dot product with a row of its own. So every German
# letter has two rows, one for reading it and one for writing it. Are both needed? Press and Wolf
# (2017) **tied** the two tables into *one* parameter. If both languages share a vocabulary, all
# three can be tied, as in the paper.
#
# ### Exercise 10.2 · `Translator`
# ●●● hard · 25 minutes · 5 points
#
# Graded in four parts: without padding (2), with padding (1), tied tables (1), dropout on the
# embeddings (1).
#
# Write the whole path of the data, with **one** layer on each side: the figure with N = 1. The
# masks and the layers are given; these layers are post-norm, so there are no last norms. Take the
# five short methods in this order (`pass` in place of the `raise` in `__init__` lets you begin):
# 1. `embed`: rows times √d_model, plus the sinusoids in the rows' dtype, then dropout,
# 2. `encode`: from ids to the memory, `(B, T_k, d_model)`,
# 3. `decode`: from ids and memory to the scores, `(B, T_q, target_size)`,
# 4. `forward`: the two together, and the target shifted,
# 5. `__init__`: the tables and layers are there; tie what `tied` asks for.
#
# <details><summary>Hint 1 · the shapes</summary>
#
# An embedding turns `(B, T)` into `(B, T, d_model)`. `sinusoidal_positions(positions, d_model)` of
# lesson 08 gives `(T, d_model)`; `.to(x.dtype)` converts it.
# </details>
# <details><summary>Hint 2 · smaller steps</summary>
#
# `encode` and `decode` each need `embed`, with which table? A decoder layer takes target, memory,
# target's mask, memory's mask. Which box of the figure comes after it and the last norm?
# </details>
# <details><summary>Hint 3 · tying</summary>
#
# Let the attribute `weight` of two modules be the same object; then the gradients of both uses meet
# in it. Copying the numbers is not enough.
# </details>
# <details><summary>Hint 4 · “the module has other parameters … also generator.weight”</summary>
#
# Your generator still has a table of its own: it is not tied.
# </details>

# %%
from attention.provided import demand
from attention.sequence_to_sequence import shift_right
from attention.tokens_and_positions import sinusoidal_positions
from attention.transformer_blocks import DecoderLayer, EncoderLayer

TIED = ("none", "target", "all")  # the ways in which Translator may share its tables

# %% exercise="Translator"
from attention.transformer import Translator

# %% check="Translator" points=5
check.Translator(Translator)

# %% [markdown]
# ## N layers
# A stack takes and returns the same as a single layer, so it can stand in the layer's place.
#
# One attention already reaches every word. What is a second layer for? It reads what the first has
# *made* of the words. How much our numbers need that, you will see after the training.
#
# ### Exercise 10.3 · `Encoder`
# ●●○ medium · 10 minutes · 3 points
#
# Graded in three parts: pre-norm (1), post-norm (1), with a mask and dropout (1).
#
# Make `n_layers` layers, one after the other, each with **weights of its own**. With pre-norm,
# every layer normalises what goes *in*, so the sum that leaves the last one needs a final norm.
# Post-norm layers end with a norm already. `sizes` holds all that a layer of lesson 09 needs. The
# decoder will be this stack with layers of another kind, so use `self.kind` for the layers, and
# pass the arguments after x on to each layer.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A loop over the layers, in which x is replaced. Then the norm.
# </details>
# <details><summary>Hint 2 · the modules</summary>
#
# `nn.ModuleList` is a list in which PyTorch finds the parameters. `nn.Identity()` returns what it
# gets. The attributes are called `layers` and `norm`.
# </details>
# <details><summary>Hint 3 · “the module has other parameters … without layers.1.”</summary>
#
# `[layer] * 6` is a list of six references to *one* object. Build a new layer each time.
# </details>

# %% exercise="Encoder"
from attention.transformer import Encoder

# %% check="Encoder" points=3
check.Encoder(Encoder)

# %% [markdown]
# The decoder is the same, with layers of another kind. All its layers look at the same memory:

# %% given="Decoder"
from attention.transformer import Decoder

# %% [markdown]
# ## Writing
# To translate, the model reads what it has written so far: BOS, then BOS and its first letter, and
# so on. Each time it scores a next token after *every* position, but only the last scores are new.
#
# ### Exercise 10.4 · `append_best`
# ●○○ easy · 8 minutes · 2 points
#
# Take one step of greedy decoding for a batch: write the best next token at the end of each row. A
# row that has ended, with EOS or with PAD after it, goes on with PAD.
#
# <details><summary>Hint 1 · the idea</summary>
#
# The last id of each row says whether it has ended, the last scores say which token is best.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# The best tokens are `(B,)`. To be joined to `(B, T)` they must be `(B, 1)`.
# </details>

# %% exercise="append_best"
from attention.transformer import append_best

# %% check="append_best" points=2
check.append_best(append_best)

# %% [markdown]
# ## The whole model
# `Transformer` is your `Translator` with stacks in place of the two layers. It makes the masks
# itself, and `translate` is a loop around your `append_best`. Pre-norm is the default, since it
# needs less care (lesson 09). `translate` computes all earlier positions again at every step;
# lesson 13 will keep keys and values. Below the class: the sizes of the model that we will train.

# %% given="Transformer"
from attention.transformer import Transformer

# %% demo=true
experiments.shapes(Transformer)

# %% [markdown]
# ## How large is it?
# Is it as large as the paper's? Count the parameters of its two sizes, on PyTorch's device `meta`,
# where tensors have shapes and no numbers:

# %%
for name, sizes in {"base": (512, 8, 2048), "big": (1024, 16, 4096)}.items():
    with torch.device("meta"):
        paper = Transformer(37000, 37000, *sizes, pre_norm=False, tied="all")
    n_parameters, table = (sum(p.numel() for p in m.parameters()) for m in (paper, paper.generator))
    print(f"{name:<4} {n_parameters:11,} parameters, of which the one table {table:10,}")

# %% [markdown]
# The paper says 65 and 213 million, with “about 37 000” tokens; our totals are within 3 % of both.
# Without tying there would be three tables, which would make up more than half of the base model.
#
# ## Is it right?
# A model that sees the future trains beautifully and writes nonsense. How would you notice before
# you train? With three tests: no layer sees the future, padding changes nothing, and the model can
# learn one batch by heart. A failure is a bug or, in the third, perhaps a bad learning rate.

# %% demo=true
experiments.three_tests(Transformer)

# %% [markdown]
# ## Training
# Data, learning rate and 300 steps of 64 numbers are those of lessons 02 and 03. The loop is the
# one that you wrote in lesson 02, but the model finds the padding without being told the lengths.
# The cell takes the first 60 steps. To train to the end, in about a minute, change 60 to 300.

# %% demo=true
from attention.provided.data.numbers import numbers
from attention.provided.models import translators
from attention.sequence_to_sequence import masked_cross_entropy

torch.manual_seed(0)
corpus, losses = numbers(), []
sizes = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
model = Transformer(*sizes, **translators.SMALL)
optimizer = translators.adam(model, steps=300)
for batch in itertools.islice(corpus.batches(64, 300, seed=0), 60):
    optimizer.zero_grad()
    logits = model(batch.source, batch.target)  # (B, T_q, target_size)
    loss = masked_cross_entropy(logits, batch.target)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss at the steps 0, 20, 40 and 59:", *(f"{losses[n]:.3f}" for n in (0, 20, 40, -1)))

# %% [markdown]
# The weights after all 300 steps of this very training are stored. They are loaded below.
#
# ### Predict first
# The translator of lesson 02, with one vector, got hardly any number of five or six digits right.
# With attention (lesson 03) most five-digit numbers were right; with six digits it depended on the
# seed. How will the Transformer do on 500 numbers that it has never seen?

# %% demo=true
from attention.provided.predictions import compare

prediction = None  # the share translated without error, 0 to 1; None skips this

# %% demo=true
from attention.experiments import translator_so_far

kept = translators.load(model, "transformer")  # its losses, too
print(f"the stored training: {kept[0]:.3f} … {kept[59]:.3f} … {kept[-1]:.4f} at the end")
compare(prediction, translators.exact_match(model, corpus), "held-out numbers without error")
_ = translator_so_far.up_to("10")

# %% [markdown]
# *Share of test numbers of seven, eight and nine digits translated without error: three runs of
# each translator, trained on up to nine digits. Colour: the median; framed: this lesson.*
#
# This row completes the table that began in lesson 05. Every run of the whole Transformer gets at
# least .97 of the numbers of seven digits right, and at least .81 of those of nine. Before, success
# depended on the seed. With seven digits attention itself helped every seed; after it no single
# change did: not heads, not positions, not two blocks that read. The jump comes with the last row.
# Blocks write, too, and no recurrent network is left: which does it, the table cannot say.
#
# And the second layer? For our numbers it matters little. Trained on up to six digits, as above,
# N = 1 gets .96 to .98 of the six-digit numbers right, N = 2 gets .99 (“one layer” in the records).
#
# ## The three uses of attention, in one forward pass
# ### Predict first
# For 931: where do the eight heads of the cross-attention look to write the “e” of *ein*?

# %% demo=true
weights, words, letters = experiments.weights_for(931, model)
_ = experiments.three_uses(weights, words, letters)

# %% [markdown]
# *Head 3 of layer 1 in each stack, for 931; queries down, keys across. (Heads and layers are
# counted from 0, here and in all later lessons, so layer 1 is the last.) Left: *thirty* and *one*
# look back at *hundred*, *nine* and *hundred* at EOS. Middle: a letter may look at itself and at
# those before it; about half of the rows put most weight on the letter just before. The future is
# empty. Right: the letter to be written looks at the words; the “e” of* ein *is framed.* The right
# picture resembles lesson 03's alignment: *neun* looks at *nine*, most of *hundert* at *hundred*,
# the “e” of *ein* at *one*, *dreißig* at *thirty*. But “in” and most of *und* look back at
# *hundred*: this head is not the whole translator. Here are all heads of the cross-attention:

# %% demo=true
experiments.every_head(weights, words, letters)

# %% [markdown]
# *Cross-attention of both layers, all heads, for 931.* Look at the framed row, the “e” of *ein*. In
# layer 0 two heads look at *one*, two are undecided, and none looks at *thirty*. In layer 1 two
# heads look at *thirty* and two at *one*, each with nearly all its weight. Their mean would show a
# letter that looks at both words, which no head does. So look at heads before you average them.
# Choose one, and hover over the map:

# %% demo=true
from attention.provided.figures.explorer import Sentence, explorer

maps = {f"layer {n}": weights[f"decoder.layers.{n}.cross_attention"][0] for n in (0, 1)}
explorer([Sentence("931", maps, dict.fromkeys(maps, (letters, words)))])

# %% [markdown]
# The [glass translator](../../book/_build/html/glass.html), a page of the course's book
# (`make glass`), shows this model at work: type a number, and see every score, weight and beam with
# its arithmetic.
#
# ## Break it: no positions
# Take the positions away from the source, in training and in translation, and keep everything else.
# The figure shows the three kinds of positions of lesson 08 as well. The runs are recorded;
# `experiments.train_positions("rotary", "rotary", 3, Transformer)` makes another one.
#
# <details><summary>The code that ran</summary>
#
# ```python
# if kind == "learned":
#     self.positions[side] = LearnedPositions(MOST, d_model)
# elif kind == "rotary":
#     turn_attentions(stack)
# ```
#
# This is done for each side of a model like yours. Its `embed` adds the learned positions, the
# sinusoids or nothing; `turn_attentions` rotates what leaves `W_q` and `W_k` of each
# self-attention. The loop is that of the training above.
# </details>
#
# ### Predict first
# Without positions on the source, what share of held-out numbers will be right? What will the wrong
# ones look like?

# %% demo=true
prediction = None  # the share translated without error, 0 to 1; None skips this

# %% demo=true
right = experiments.kinds_of_positions()
compare(prediction, sum(right["none"]) / len(right["none"]), "without positions, share right")

# %% [markdown]
# *Share of 415 held-out numbers (up to 100 of each length) translated without error, by their
# number of digits. Dots are single runs, three of each kind, moved apart a little; lines are their
# means.* All three kinds of positions work. After 300 steps sinusoidal positions are slightly ahead
# in all runs, and learned ones slightly behind.
#
# Without positions 27 % are right. All two-digit numbers are still right, since *thirty* and
# *one* can only be 31. But “nine hundred thirty one” and “one hundred thirty nine” hold the same
# words, so the model guesses. It gets about half of the three-digit numbers right, and fewer of the
# longer ones. At least three in four errors are correct German for the same words in another order.
#
# ## Break it: no shift
# Let the decoder read the very letters it is supposed to predict. What will happen to the loss, and
# what will the model write? The class below leaves out `shift_right`. It is trained for 25 steps of
# 16 numbers.


# %% demo=true
class Peeking(Transformer):
    def forward(self, source, target):
        source_mask, target_mask = masks_from_tokens(source, target)
        memory = self.encode(source, source_mask)
        return self.decode(target, memory, target_mask, source_mask)


experiments.without_the_shift(Transformer, Peeking)

# %% [markdown]
# After 25 steps the loss is nearly 0, because copying is easy. In translation there is nothing to
# copy: the model guesses a first letter, reads it, and repeats it until it is stopped. If a loss is
# too good to be true, look for a leak. The first of the three tests above finds this one: try
# `experiments.three_tests(Peeking)`.
#
# ## Limits
# Twice the length costs four times as many scores (lesson 18). A translation is still written token
# by token. The maps show where a head looks, not why (lesson 17). And numbers are an easy language.
#
# ## Something of your own
# Break the translator in your own way: one head, one layer, d_model 8, English words in reverse.
# Train it with the cell above; `translators.translations(model, corpus, pairs)` writes. Make a
# table of five numbers: English, German, what your model wrote. Can a friend see from it what you
# took away?

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# An encoder describes the source. A decoder reads the target so far and looks at that description
# in every layer. Three tables lead from tokens to vectors and back. The three uses of attention
# differ only in where queries, keys, values and masks come from. Targets are shifted right and the
# future is masked, so all positions learn at once and none sees the letter it has to predict.
#
# `autograder collect` gathers the exercises you have passed. After lesson 13 you can train them as
# your own Transformer.
#
# This model needs pairs of texts to learn from. In lesson 15 only the decoder is left: it learns to
# continue any text, and a *prompt*, the beginning of a text, tells it what to do.
#
# **Next** [11 · What does it take to train one?](../11_training/11_training.ipynb) A learning-rate
# schedule, batches counted in tokens, and a step that stays the same however it is split.
#
# ## Open questions
# No points, no check.
# 1. `watch_attention(model, {name: gates})` of `attention.provided.models.attention_weights`
#    multiplies each head by a gate. Which single head of the cross-attention costs most when it is
#    switched off? What does a whole layer of them cost?
# 2. Give the trained model the English words in reverse order. What does it write?
# 3. **The model on one page.** Put your pieces of lessons 05 to 10 together in one file of at most
#    120 lines. Load the weights of `shipped.trained("transformer")` of `attention.train` into it,
#    and compare the scores.

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. On three times 100 held-out numbers the whole model gets .99 to 1.00 right. Without one head of
#    layer 0 it gets .94 to 1.00; of layer 1, .89 to .98, but .58 to .62 without head 2. Without all
#    heads of layer 0 it gets .25 to .41, without those of layer 1 at most .03. Most single heads
#    can be spared, but no layer (`python -m attention.experiments transformer`, “heads switched
#    off”).
# 2. Hardly a number is right: 6, 2 and 0 of three times 100. But 37, 40 and 45 of the others
#    translate other numbers with exactly these words. The model reads both words and order (“words
#    reversed”, same command).
# 3. Below. A test compares it with the library: same weights, same scores, same gradients.
#
# </details>

# %% [markdown] answer=true
# ### The whole Transformer on one page
# ```python
# """The Transformer of lessons 05 to 10 on one page: the same weights, the same scores."""
#
# import torch
# from torch import nn
#
# PAD, BOS, EOS = 0, 1, 2
#
#
# def attention(q, k, v, mask):  # lessons 05 and 06
#     scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, float("-inf"))
#     nobody = ~mask.any(dim=-1, keepdim=True)  # a query with nothing to look at gets zeros
#     return scores.masked_fill(nobody, 0.0).softmax(dim=-1).masked_fill(nobody, 0.0) @ v
#
#
# class MultiHeadAttention(nn.Module):  # lesson 07
#     def __init__(self, d_model, n_heads):
#         super().__init__()
#         self.heads = (n_heads, d_model // n_heads)
#         self.W_q, self.W_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
#         self.W_v, self.W_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
#
#     def forward(self, x, memory, mask):
#         parts = self.W_q(x), self.W_k(memory), self.W_v(memory)  # (B, T, d_model) each
#         q, k, v = (part.unflatten(-1, self.heads).transpose(1, 2) for part in parts)
#         context = attention(q, k, v, mask.unsqueeze(1))  # (B, H, T_q, d_head)
#         return self.W_o(context.transpose(1, 2).flatten(2))  # (B, T_q, d_model)
#
#
# def sinusoidal_positions(x):  # lesson 08; bfloat16 itself cannot count beyond 256
#     count = torch.arange(max(x.shape)).to(x.device, torch.promote_types(x.dtype, torch.float32))
#     angles = count[: x.shape[1], None] / 10000 ** (count[: x.shape[2] : 2] / x.shape[2])
#     return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).to(x.dtype)  # (T, d_model)
#
#
# class LayerNorm(nn.Module):  # lesson 09, and all of the next three
#     def __init__(self, d_model):
#         super().__init__()
#         self.weight = nn.Parameter(torch.ones(d_model))
#         self.bias = nn.Parameter(torch.zeros(d_model))
#
#     def forward(self, x):
#         centred, variance = x - x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
#         return centred / (variance + 1e-5) ** 0.5 * self.weight + self.bias
#
#
# class FeedForward(nn.Module):
#     def __init__(self, d_model, d_ff):
#         super().__init__()
#         self.linear_1, self.linear_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
#
#     def forward(self, x):
#         return self.linear_2(self.linear_1(x).relu())
#
#
# class Layer(nn.Module):  # an encoder layer; with cross=True a decoder layer; pre-norm
#     def __init__(self, d_model, n_heads, d_ff, dropout, cross=False):
#         super().__init__()
#         self.attention = MultiHeadAttention(d_model, n_heads)
#         self.norm_1, self.norm_2 = LayerNorm(d_model), LayerNorm(d_model)
#         if cross:
#             self.cross_attention = MultiHeadAttention(d_model, n_heads)
#             self.norm_3 = LayerNorm(d_model)
#         self.feed_forward, self.dropout = FeedForward(d_model, d_ff), nn.Dropout(dropout)
#
#     def forward(self, x, mask, memory=None, memory_mask=None):
#         h, last_norm = self.norm_1(x), self.norm_2
#         x = x + self.dropout(self.attention(h, h, mask))
#         if memory is not None:
#             h, last_norm = self.norm_2(x), self.norm_3
#             x = x + self.dropout(self.cross_attention(h, memory, memory_mask))
#         return x + self.dropout(self.feed_forward(last_norm(x)))
#
#
# class Stack(nn.Module):  # lesson 10, and all that follows
#     def __init__(self, n_layers, d_model, *sizes, cross=False):
#         super().__init__()
#         layers = [Layer(d_model, *sizes, cross=cross) for _ in range(n_layers)]
#         self.layers, self.norm = nn.ModuleList(layers), LayerNorm(d_model)
#
#     def forward(self, x, *others):
#         for layer in self.layers:
#             x = layer(x, *others)
#         return self.norm(x)
#
#
# class Transformer(nn.Module):
#     def __init__(self, source_size, target_size, d_model, n_heads, d_ff, n_layers, dropout=0.1):
#         super().__init__()
#         self.source_embedding = nn.Embedding(source_size, d_model)
#         self.target_embedding = nn.Embedding(target_size, d_model)
#         self.generator = nn.Linear(d_model, target_size, bias=False)
#         self.encoder = Stack(n_layers, d_model, n_heads, d_ff, dropout)
#         self.decoder = Stack(n_layers, d_model, n_heads, d_ff, dropout, cross=True)
#         self.dropout = nn.Dropout(dropout)
#
#     def embed(self, tokens, embedding):
#         x = embedding(tokens) * embedding.embedding_dim**0.5  # (B, T, d_model)
#         return self.dropout(x + sinusoidal_positions(x))
#
#     def encode(self, source):
#         x, mask = self.embed(source, self.source_embedding), (source != PAD).unsqueeze(1)
#         return self.encoder(x, mask)  # the memory: (B, T_k, d_model)
#
#     def decode(self, read, memory, source):
#         past = read.new_ones(read.shape[1], read.shape[1]).tril().bool()  # lesson 06
#         mask, memory_mask = (read != PAD).unsqueeze(1) & past, (source != PAD).unsqueeze(1)
#         y = self.decoder(self.embed(read, self.target_embedding), mask, memory, memory_mask)
#         return self.generator(y)  # (B, T_q, target_size)
#
#     def forward(self, source, target):
#         shifted = torch.cat([torch.full_like(target[:, :1], BOS), target[:, :-1]], dim=1)
#         return self.decode(shifted, self.encode(source), source)  # (B, T_q, target_size)
#
#     @torch.no_grad()
#     def translate(self, source, max_length=100):
#         read, memory = torch.full_like(source[:, :1], BOS), self.encode(source)
#         while read.shape[1] <= max_length and not (ended := (read == EOS).any(dim=1)).all():
#             best = self.decode(read, memory, source)[:, -1].argmax(dim=1)  # (B,)
#             read = torch.cat([read, best.masked_fill(ended, PAD).unsqueeze(1)], dim=1)
#         return read[:, 1:]
# ```

# %% [markdown]
# ## ★ Tied or not?
# Tying the generator to the target embedding saves only 1 536 of our model's 172 864 parameters. In
# the paper's models each table saved is 19 or 38 million. Does tying cost anything?
#
# In an *untrained*, tied model a letter's row comes in, the layers add a little to it, and the sum
# is compared with the rows of all letters. Which letter will the model say? That may depend on how
# long the rows are compared with what is added. So we vary two things: the generator's table, its
# own or tied, and the length with which the rows of both target tables begin, that of `Translator`
# (“long”) or a tenth of it (“short”).

# %% demo=true
_ = experiments.tied_tables()

# %% [markdown]
# *Loss against step, the mean of every ten, for both generators and both lengths; a line for each
# of three seeds, recorded by `python -m attention.experiments transformer`.* With long rows an
# untrained tied model is a parrot: it repeats what it has read, which is hardly ever what comes
# next. It learns more slowly with all three seeds: after 300 steps it gets .31 to .56 of the
# six-digit numbers right. With short rows it gets .97 to .99 right, as many as separate tables with
# short rows. So most of the harm comes from the start, not from the tie; but its loss still ends
# about twice as high as with separate tables.
#
# `Translator` begins with long rows, as the paper's own code does, and leaves its tables untied:
# with 24 target tokens a tie saves next to nothing. With many rare tokens it pays: Press and Wolf
# found better language models with fewer parameters, and translators as good at less than half the
# size. If you tie tables, try both lengths.
#
# ## References
# - A. Vaswani et al. (2017). *Attention is all you need.*
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - O. Press, L. Wolf (2017). *Using the output embedding to improve language models.*
#   [arXiv:1608.05859](https://arxiv.org/abs/1608.05859)
# - R. Xiong et al. (2020). *On layer normalization in the Transformer architecture.*
#   [arXiv:2002.04745](https://arxiv.org/abs/2002.04745)
