# %% [markdown]
# # 10 · How do the pieces make a translator?
#
# Attention, heads, masks, embeddings, positions, norms, layers: all parts lie on the table. In this
# lesson they become one model. It is the Transformer of Vaswani and colleagues (2017), and within
# half a minute it learns to write numbers in German.
#
# **After this lesson** you can
# - follow a sentence through the whole model, with the shape at every step,
# - make the **masks** from the tokens, and say which of the three attentions gets which,
# - stack layers into an **encoder** and a **decoder**, and shift, embed and score around them,
# - derive the number of parameters of any Transformer, the paper's two among them,
# - train one, and read what its heads look at.
#
# **Time** 120 minutes · **Points** 18 · **GPU** not needed · **You need** lessons 02 and 05 to 09

# %%
import math

import torch
from torch import nn

from attention.provided import plots, translators
from attention.provided.data import BOS, EOS, PAD
from attention.masked_attention import causal_mask
from attention.multi_head_attention import attention_parameters
from attention.sequence_to_sequence import shift_right
from attention.provided.summary import summary
from attention.tokens_and_positions import sinusoidal_positions
from attention.provided.sublayers import watch_attention
from attention.transformer_blocks import DecoderLayer, EncoderLayer
from autograder import check

TIED = ("none", "target", "all")  # the ways in which Translator may share its tables

# %% [markdown]
# ## What fails without this idea
# The translator of lesson 03 looks back at all words, but it still *reads* and *writes* with a
# recurrent network: each state waits for the one before. How many steps must be taken one after the
# other, to train on one batch of it?

# %% demo=true
corpus = translators.data.numbers()
pair_of = {pair[0]: pair for pair in corpus.train + corpus.test}
longest = max(corpus.train, key=lambda pair: len(pair[2]))
batch = corpus.batch([longest, corpus.train[5], corpus.train[500]])
(B, T_k), T_q = batch.source.shape, batch.target.shape[1]
print(f"{longest[1]}\n{longest[2]}")
print(f"words, with EOS: {T_k}   letters, with EOS: {T_q}")
print(f"steps one after the other, recurrent: {T_k} + {T_q} = {T_k + T_q}")
print("layers one after the other, a Transformer with N = 2: 2 + 2 = 4")

# %% [markdown]
# And what stands in the first word has to survive all the steps between it and the place where it
# is needed. In a Transformer any two positions are one attention apart. The paper compares:
#
# | layer, sequence of length *T* | multiplications | one after the other | longest path |
# |---|---|---|---|
# | self-attention | O(T² · d) | O(1) | O(1) |
# | recurrent | O(T · d²) | O(T) | O(T) |
# | convolution of width *k* | O(k · T · d²) | O(1) | O(log_k T), if dilated |
#
# ## The idea
# Two stacks. The **encoder** turns the source into vectors that know their sentence: the *memory*.
# The **decoder** turns the target, as far as it is written, into scores for the next token, and
# looks at the memory in every layer. Outside of the stacks there are only tables: tokens become
# vectors, and vectors become scores.
#
# ![Left: the source is embedded, passes through N encoder layers and a final norm, and becomes the
# memory. Right: the target is shifted right, embedded, and passes through N decoder layers, whose
# cross-attention reads the memory, a final norm and the generator. At the arrows: ids have the
# shape (B, T), vectors (B, T, d_model), scores (B, T_q, target_size).](figures/transformer_way.svg)
#
# Attention is used in **three ways**. It is the same function each time. Only what goes in differs:
#
# | where | queries | keys and values | mask |
# |---|---|---|---|
# | encoder | source | source | no padding |
# | decoder, first | target | target | no padding, no future |
# | decoder, second: **cross-attention** | target | memory, the encoder's output | no padding |
#
# The paper's base model has N = 6 layers on each side, d_model = 512, 8 heads, and d_ff = 2048.
#
# ## Shifted right
# What does the decoder read, and what should it say? Take “zwölf”, by hand. At each position it
# must say a letter that it has not read yet:

# %%
letters = ["z", "w", "ö", "l", "f", "EOS"]
reads = ["BOS", *letters[:-1]]
print("position  " + "".join(f"{t:<5}" for t in range(6)))
print("reads     " + "".join(f"{token:<5}" for token in reads))
print("says      " + "".join(f"{token:<5}" for token in letters))

# %% [markdown]
# Position 3 reads BOS, z, w, ö, for the mask lets it see the past and itself, and says “l”. In
# training all positions say their letter at once. This is the teacher forcing of lesson 02, and
# `shift_right` is the function from there.
#
# ## Masks from tokens
# ### Exercise 10.1 · `masks_from_tokens`
# ●●○ medium · 10 minutes · 2 points
#
# The model gets ids and nothing else. PAD says where the padding is. Make one mask for looking at
# the source, and one for the target looking at itself. `causal_mask` of lesson 06 is imported.
#
# (The decoder layers of lesson 09 add the causal mask by themselves. Twice is as good as once, and
# a mask that says everything can be looked at, and be handed to other layers too.)
#
# <details><summary>Hint 1 · the idea</summary>
#
# Compare the ids with PAD. For the target, two conditions must hold at once: & joins them.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Padding hides *columns*, what is looked at, from all queries: `(B, T)` needs an axis of length 1
# in the middle. `(B, 1, T_q)` and `(T_q, T_q)` broadcast to `(B, T_q, T_q)`.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# source mask = where the source is no PAD, with an axis for the queries
# target mask = where the target is no PAD, with an axis for the queries
# both, the second joined with the causal mask
# ```
# </details>

# %% exercise="masks_from_tokens"
from attention.transformer import masks_from_tokens

# %% check="masks_from_tokens" points=2
check.masks_from_tokens(masks_from_tokens)

# %% demo=true
small = corpus.batch([pair_of[12], pair_of[21]])
source_mask, target_mask = masks_from_tokens(small.source, shift_right(small.target))
read = shift_right(small.target)[0].tolist()
axes = plots.panels(columns=2, width=4.6, height=3.4, share=False)
words = [corpus.source_vocabulary.tokens[i] for i in small.source[0].tolist()]
names = [corpus.target_vocabulary.tokens[i] for i in read]
shown = source_mask[0].expand(len(read), -1)
for ax, mask, keys in zip(axes, (shown, target_mask[0]), (words, names), strict=True):
    plots.heatmap(mask.float(), ax, queries=names, keys=keys, colorbar=False)
    ax.tick_params(axis="x", rotation=60)
for ax, title in zip(axes, ("source_mask, the same for all queries", "target_mask"), strict=True):
    ax.set_title(title)

# %% [markdown]
# *Dark: may be looked at. The number is 12, in a batch beside 21. Left, the padding behind the
# source is hidden; right, the padding and the future.* The rows of padding at the bottom do see
# something. It does no harm: the loss leaves out what they say.
#
# ## Both ends
# Around the stacks there are three tables: one row for each source token, one for each target
# token, and the **generator**, which scores each target token by a dot product with its row. The
# last two have the same shape, (target_size, d_model). Press and Wolf (2017) made them *one*
# parameter: **tied**. If both languages share one vocabulary, all three can be one. So it is in the
# paper.
#
# ### Exercise 10.2 · `Translator`
# ●●● hard · 25 minutes · 5 points
#
# The whole way of the data, with **one** layer on each side for now: the figure with N = 1, and
# without the final norms, since these layers are post-norm. The masks are given. Five short parts:
# - `__init__`: the tables and layers are there; tie what `tied` asks for,
# - `embed`: rows times √d_model, plus positions, then dropout,
# - `encode` and `decode`: each from ids to its end of the figure,
# - `forward`: the two together, and the target shifted.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Follow the figure. Each part is a box or two of it. In `forward`, what does the decoder read?
# </details>
# <details><summary>Hint 2 · tying</summary>
#
# A parameter is an object. Let the attribute `weight` of two modules be the same object; then the
# gradients of both uses meet in it. Copying numbers does not do that.
# </details>
# <details><summary>Hint 3 · the shapes</summary>
#
# An embedding turns `(B, T)` into `(B, T, d_model)`. `sinusoidal_positions` of lesson 08 takes the
# positions 0.0, 1.0, … as a floating tensor, of the dtype of the vectors, and gives
# `(T, d_model)`.
# </details>
# <details><summary>Hint 4 · pseudocode</summary>
#
# ```
# __init__  if the target is tied, or all: the generator's weight is the target embedding's
#           if all: so is the source embedding's
# embed     look up; times √d_model; plus positions; dropout
# encode    the encoder, of the embedded source, with the source's mask
# decode    the decoder, of the embedded tokens, with the memory and both masks; the generator
# forward   encode; decode the shifted target
# ```
# </details>
# <details><summary>Hint 5 · “the module has other parameters … also generator.weight”</summary>
#
# The check loads one table for all tied uses. If your generator asks for one of its own, it is not
# tied.
# </details>

# %% exercise="Translator"
from attention.transformer import Translator

# %% check="Translator" points=5
check.Translator(Translator)

# %% [markdown]
# ## N layers
# A stack of layers is called like a single one. So it can take the single layer's place, and
# nothing around it changes.
#
# ### Exercise 10.3 · `Encoder`
# ●●○ medium · 10 minutes · 3 points
#
# `n_layers` layers, one after the other, each with **weights of its own**. With pre-norm, every
# layer normalises what goes *in*, so nobody has normalised the sum that comes out of the last one:
# a final norm does. Post-norm layers end with a norm already. `sizes` is given: all that a layer of
# lesson 09 wants.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A loop over the layers, in which x is replaced. Then the norm.
# </details>
# <details><summary>Hint 2 · the modules</summary>
#
# `nn.ModuleList` is a list in which PyTorch finds the parameters. It takes any number of modules,
# for example from a comprehension. `nn.Identity()` hands on what it gets. The attributes are called
# `layers` and `norm`.
# </details>
# <details><summary>Hint 3 · “three layers of weights expected, one found”</summary>
#
# `[layer] * 6` is a list of six references to *one* object. Build a new layer each time.
# </details>

# %% exercise="Encoder"
from attention.transformer import Encoder

# %% check="Encoder" points=3
check.Encoder(Encoder)

# %% [markdown]
# ### Exercise 10.4 · `Decoder`
# ●●○ medium · 10 minutes · 3 points
#
# The same for decoder layers. Every layer looks at the same memory.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Only x goes from layer to layer. Memory and masks are the same for all.
# </details>
# <details><summary>Hint 2 · the order of arguments</summary>
#
# A decoder layer is called with the target, the memory, the target's mask and the memory's mask.
# </details>
# <details><summary>Hint 3 · “RuntimeError: The size of tensor a (5) must match … b (7)”</summary>
#
# A mask for T_k = 7 source positions does not fit T_q = 5 target positions: which mask went where?
# </details>

# %% exercise="Decoder"
from attention.transformer import Decoder

# %% check="Decoder" points=3
check.Decoder(Decoder)

# %% [markdown]
# ## Writing
# In training the true letters are read. To translate, the model reads what it has written itself:
# BOS, then BOS and its first letter, and so on. Each time it scores a next token after *every*
# position; only the scores after the last one are new.
#
# ### Exercise 10.5 · `append_best`
# ●○○ easy · 8 minutes · 2 points
#
# One step of greedy decoding for a batch: put the best next token behind each row. A row that has
# ended, with EOS or with PAD behind it, goes on with PAD.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Look at the last id of each row to see who has ended, and at the last scores for the best token.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# The last scores are `(B, vocab_size)`, the best tokens `(B,)`. To stand behind `(B, T)` they must
# be `(B, 1)`.
# </details>

# %% exercise="append_best"
from attention.transformer import append_best

# %% check="append_best" points=2
check.append_best(append_best)

# %% [markdown]
# ## The whole model
# Stacks in the places of the layers, masks from tokens, and a loop that writes. Nothing else is
# needed. Pre-norm is the default, because it trains without much care (lesson 09); `pre_norm=False`
# is the paper's order. `translate` computes all earlier positions again at every step. Lesson 13
# will remember them instead.

# %% given="Transformer"
from attention.transformer import Transformer

# %% [markdown]
# `print(model)` shows names. A table of modules, with the shape that leaves each of them and the
# parameters in it, shows more. This is the model that we will train:

# %% demo=true
torch.manual_seed(translators.SEED)
sizes = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
model = Transformer(*sizes, **translators.SMALL)
print({name: value for name, value in translators.SMALL.items() if name != "fused"})
print(f"batch of {B}: {T_k} words, {T_q} letters\n")
print(summary(model, batch.source, batch.target))

# %% [markdown]
# ## How large is it?
# ### Exercise 10.6 · `transformer_parameters`
# ●●○ medium · 12 minutes · 3 points
#
# Derive the number of parameters from the sizes. `attention_parameters(d_model, n_heads, d_head)`
# of lesson 07 counts one attention, biases included. The embeddings and the generator have no bias.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Count one attention, one feed-forward network, one norm. How many of each are in an encoder layer,
# and how many in a decoder layer? The figure shows the sublayers; each has a norm.
# </details>
# <details><summary>Hint 2 · the numbers of heads</summary>
#
# n_heads · d_head = d_model, so one head of d_model counts like eight heads of d_model / 8.
# </details>
# <details><summary>Hint 3 · the tables</summary>
#
# Untied: three tables. Target tied: two. All tied: one.
# </details>
# <details><summary>Hint 4 · by 2 · d_model or 4 · d_model too few</summary>
#
# A norm has a scale and a shift. With pre-norm there is a final norm behind each of the two stacks.
# </details>

# %% exercise="transformer_parameters"
from attention.transformer import transformer_parameters

# %% check="transformer_parameters" points=3
check.transformer_parameters(transformer_parameters)

# %% demo=true
counted = transformer_parameters(*sizes, 64, 128, n_layers=2)
print(f"the model above: {counted:,}, and PyTorch counts {translators.size(model):,}\n")
print("paper   N  d_model  d_ff        layers      + table of 37 000        total")
for name, d_model, d_ff in (("base", 512, 2048), ("big", 1024, 4096)):
    total = transformer_parameters(37000, 37000, d_model, d_ff, 6, pre_norm=False, tied="all")
    table = 37000 * d_model
    print(f"{name:<6}  6  {d_model:7d}  {d_ff}  {total - table:12,d}  {table:20,d}  {total:11,d}")
untied = transformer_parameters(37000, 37000, 512, 2048, 6, pre_norm=False)
print(f"\nbase with three tables: {untied:,}")

# %% [markdown]
# The paper says 65 and 213 million, and a vocabulary of “about 37 000” tokens, so the counts agree
# as well as they can. Without tying, more than half of the base model would be tables.
#
# ## Is it right?
# Three tests that every translator should pass, on the untrained model. First: no look into the
# future through all layers together. Second: padding changes nothing. Third: it can learn one batch
# by heart. A model that fails the third is broken, whatever it does elsewhere.

# %% demo=true
model.eval()
with torch.no_grad():
    before = model(batch.source, batch.target)
    other = batch.target.clone()
    other[:, 5:] = other[:, 5:].roll(1, dims=0)  # other letters from position 5 on
    after = model(batch.source, other)
    wider = torch.cat([batch.source, torch.full((B, 4), PAD)], dim=1)
    padded = model(wider, batch.target)
for text, one, two in (
    ("scores up to position 5 as before: ", before[:, :6], after[:, :6]),
    ("scores behind position 5 as before:", before[:, 6:], after[:, 6:]),
    ("with 4 more PAD behind the source: ", before, padded),
):
    print(text, torch.allclose(one, two, atol=1e-5))
pairs = corpus.train[-8:]
losses = translators.train(model, 60 * [corpus.batch(pairs)], 60)
written = translators.translations(model, corpus, pairs)
right = sum(text == pair[2] for text, pair in zip(written, pairs, strict=True))
print(f"one batch of 8: loss {losses[0]:.2f} to {losses[-1]:.3f} after 60 steps; {right} right")

# %% [markdown]
# (The letters from position 5 on are changed, and the scores *at* position 5 stay: they come from
# what was read before, up to the letter at position 4.)
#
# ## Training
# The same data as in lessons 02 and 03: 20 000 numbers of one to six digits, English words to
# German letters; the same 300 steps of 64 numbers; the same learning rate. It takes 20 to 30
# seconds.
#
# ### Predict first
# After 300 steps the translator with one vector got hardly any number of five or six digits right,
# the one with attention nearly all. How will this one do on 500 numbers that it has never seen?

# %% demo=true
torch.manual_seed(translators.SEED)
model = Transformer(*sizes, **translators.SMALL)
batches = corpus.batches(translators.BATCH, translators.STEPS, translators.SEED)
losses = translators.train(model, batches, translators.STEPS)
print(f"loss after 50 steps {losses[min(49, len(losses) - 1)]:.2f}, at the end {losses[-1]:.4f}")
print(
    f"500 held-out numbers, translated without error: {translators.exact_match(model, corpus):.2f}"
)

# %% [markdown]
# The weights of exactly this training also ship with the course, as `translators.trained(name)`
# loads them. So do those of lessons 02 and 03:

# %% demo=true
shown = {
    "one vector (02)": "sequence_to_sequence",
    "attention (03)": "bahdanau_attention",
    "Transformer (10)": "transformer",
}
models = {label: translators.trained(name)[0] for label, name in shown.items()}
curves = {label: translators.accuracy_by_digits(one, corpus) for label, one in models.items()}
kept = {label: translators.load(models[label], name) for label, name in shown.items()}
axes = plots.panels(columns=2, width=4.4, height=3.0, share=False)
plots.accuracy(curves, axes[0])
plots.lines(range(1, 301), kept, axes[1], xlabel="step", ylabel="nats a letter")
axes[1].set(yscale="log", title="loss")
axes[1].get_legend().remove()
print(f"{'':<17}{'parameters':>11}", *(f"{d} digits" for d in curves["one vector (02)"]), sep="  ")
for label, shares in curves.items():
    row = [f"{label:<17}{translators.size(models[label]):>11,}"]
    print(*row, *(f"{share:8.2f}" for share in shares.values()), sep="  ")

# %% [markdown]
# *Left: share of held-out numbers translated without error, by their number of digits. Right: loss
# in training, on a logarithmic scale. Same data, same 300 steps, same seed.* On numbers the
# Transformer is as good as the recurrent translator with attention, or a little better: its loss
# ends at a third of the other's. That alone would be no reason to change. Both can look at any
# word. What is new is that no word has to wait for another, which pays on long sentences, and on
# hardware that computes many things at once (lesson 12).
#
# ## The three uses of attention, in one forward pass
# `watch_attention` of lesson 09 collects the weights of every head while the model runs.
#
# ### Predict first
# For 931: which of the three pictures will have an empty upper right half? In which will the tens
# and the ones cross?

# %% demo=true
model = models["Transformer (10)"]
pair = pair_of[931]
one = corpus.batch([pair])
with watch_attention(model) as weights, torch.no_grad():
    model(one.source, one.target)
for name, table in weights.items():
    print(f"{name:<36} (B, H, T_q, T_k) = {tuple(table.shape)}")
words, letters = [*pair[1].split(), "EOS"], [*pair[2], "EOS"]
reads = ["BOS", *letters[:-1]]
axes = plots.panels(columns=3, width=3.6, height=5.4, share=False)
drawn = (
    ("encoder.layers.1.attention", "encoder", words, words),
    ("decoder.layers.1.attention", "decoder, causal", reads, reads),
    ("decoder.layers.1.cross_attention", "cross-attention", letters, words),
)
for ax, (name, title, queries, keys) in zip(axes, drawn, strict=True):
    average = weights[name][0].mean(dim=0)  # (T_q, T_k), over the heads
    plots.heatmap(average, ax, f"{title}\n", queries, keys, colorbar=ax is axes[-1])
    ax.set(xlabel="", ylabel="")
    ax.tick_params(axis="x", rotation=60 if keys is words else 90)

# %% [markdown]
# *Weights of the last layers for 931, averaged over the four heads; queries down, keys across.
# Left: words look at words. Middle: what is read looks at what was read before. Right: the letter
# to be written looks at the words.* In the middle the future is empty, and most weight lies on the
# letters read last. On the right is the alignment of lesson 03 again, crossing included: *neun* and
# *hundert* look at their words, the “e” of *ein* at *thirty* and *one*, half each, and *dreißig*
# goes back to *thirty*. On the left, words look at each other more than at themselves. What for, a
# picture cannot tell; lesson 17 asks.
#
# ## Break it
# Leave out the shift: let the decoder read the very letters that it should say. What will the loss
# do, and what will it translate?


# %% demo=true
class Peeking(Transformer):
    def forward(self, source, target):
        source_mask, target_mask = masks_from_tokens(source, target)
        memory = self.encode(source, source_mask)
        return self.decode(target, memory, target_mask, source_mask)


torch.manual_seed(translators.SEED)
peeking = Peeking(*sizes, **translators.SMALL)
seen = translators.train(peeking, corpus.batches(translators.BATCH, 40, translators.SEED), 40)
print(f"loss after {len(seen)} steps: {seen[-1]:.4f}   with the shift: {losses[len(seen) - 1]:.4f}")
few = corpus.test_by_digits(1)[3]
print("wanted:", few[0][2], "  written:", translators.translations(peeking, corpus, few)[0][:40])

# %% [markdown]
# The loss is as good as 0 in no time: to copy is easy. In translation there is no true letter to
# copy. The model guesses a first one, reads it, and says it again until it is stopped. A loss that
# is too good is a reason to look for a leak, and the loss alone never shows one. The first of the
# three tests above does.
#
# ## Tied or not?
# The small model above has three tables of its own. Let us tie the generator to the target
# embedding. That saves 1 536 of 172 864 parameters, not worth a word. In the paper's models it
# saves 19 or 38 million for each table. Does it cost anything?
#
# ### Predict first
# An *untrained* model, tied: a letter's row comes in, the layers add a little to it along the
# residual path, and in the end it is compared with the rows of all letters. Which letter will it
# say?

# %% demo=true
some = corpus.batch(corpus.train[-64:])
read, real = shift_right(some.target), some.target != PAD
for tied in ("none", "target"):
    torch.manual_seed(translators.SEED)
    untrained = Transformer(*sizes, **translators.SMALL | {"tied": tied}).eval()
    with torch.no_grad():
        says = untrained(some.source, some.target).argmax(dim=2)
    again = (says == read)[real].float().mean().item()
    print(f'tied="{tied}": says the letter that it has just read: {again:.2f} of the time')
tied_model, _ = translators.trained("transformer_tied")
named = {
    "three tables": kept["Transformer (10)"],
    "generator tied": translators.load(tied_model, "transformer_tied"),
}
ax = plots.lines(range(1, 301), named, xlabel="step", ylabel="nats a letter")
ax.set_yscale("log")
for label, one in (("three tables", models["Transformer (10)"]), ("tied", tied_model)):
    share = translators.exact_match(one, corpus, at_most=100)
    print(f"{label}, after 300 steps: {share:.2f} of 100 held-out numbers without error")

# %% [markdown]
# *Loss against step for the same model with three tables, and with the generator tied.* A tied
# model begins as a parrot: what it has read is most similar to itself. But the next letter is
# hardly ever the one just read, so this has to be unlearnt, and after 300 steps a third of the
# numbers still go wrong. With 24 letters there is nothing to win either. With 37 000 tokens, most
# of them rare, there is: Press and Wolf found better models with fewer parameters. So `tied` is a
# choice.
#
# ## Summary
# An encoder describes the source, a decoder reads what is written so far and looks at that
# description in every layer, and three tables lead from tokens to vectors and back. Attention is
# used in three ways, which differ only in where queries, keys and masks come from. Targets are
# shifted right, so that all positions learn at once and none sees what it should say.
#
# **Next** [11 · What does it take to train one?](../11_training/11_training.ipynb) A learning-rate
# schedule, batches counted in tokens, and a step that stays the same however it is divided.
#
# **References**
# - A. Vaswani et al. (2017). *Attention is all you need.*
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - O. Press, L. Wolf (2017). *Using the output embedding to improve language models.*
#   [arXiv:1608.05859](https://arxiv.org/abs/1608.05859)
# - R. Xiong et al. (2020). *On layer normalization in the Transformer architecture.*
#   [arXiv:2002.04745](https://arxiv.org/abs/2002.04745)
