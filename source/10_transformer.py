# %% [markdown]
# # 10 · How do the pieces make a translator?
#
# Attention, heads, masks, embeddings, positions, norms, layers: all the parts are there. In this
# lesson they become one model, the Transformer of Vaswani and colleagues (2017), and in about a
# minute it learns to write numbers in German.
#
# **After this lesson** you can
# - follow a sentence through the whole model, with the shape at every step,
# - make the **masks** from the tokens, and say which of the three attentions gets which,
# - stack layers into an **encoder** and a **decoder**, and shift, embed and score around them,
# - derive the number of parameters of any Transformer, the paper's two among them,
# - train one, read what each of its heads looks at, and say what it loses without positions.
#
# **Time** 105 minutes, ★ 2 more · **Points** 16 · **GPU** not needed · **You need** lessons 02 and
# 05 to 09

# %%
import itertools
import math

import torch
from torch import nn

from attention.masked_attention import causal_mask
from attention.multi_head_attention import attention_parameters
from attention.provided import demand
from attention.provided.data.numbers import numbers
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.figures import plots, sliders
from attention.provided.measuring.summary import summary
from attention.provided.models import translators
from attention.provided.models.attention_weights import watch_attention
from attention.provided.predictions import compare
from attention.sequence_to_sequence import masked_cross_entropy, shift_right
from attention.tokens_and_positions import sinusoidal_positions
from attention.train import shipped
from attention.transformer_blocks import DecoderLayer, EncoderLayer
from autograder import check

TIED = ("none", "target", "all")  # the ways in which Translator may share its tables
DIGITS = (2, 3, 4, 5, 6)

# %% [markdown]
# ## What fails without this idea
# The translator of lesson 03 looks back at all words, but it still *reads* and *writes* with a
# recurrent network: each state waits for the one before. How many steps must be taken one after the
# other to train it on one batch?

# %% demo=true
corpus = numbers()
pair_of = {pair[0]: pair for pair in corpus.train + corpus.test}
longest = max(corpus.train, key=lambda pair: len(pair[2]))
batch = corpus.batch([longest, corpus.train[5], corpus.train[500]])
(B, T_k), T_q = batch.source.shape, batch.target.shape[1]
print(f"{longest[1]}\n{longest[2]}")
print(f"words, with EOS: {T_k}   letters, with EOS: {T_q}")
print(f"steps one after the other, recurrent: {T_k} + {T_q} = {T_k + T_q}")
print("layers one after the other, a Transformer with N = 2: 2 + 2 = 4")

# %% [markdown]
# And what the first word says has to survive all the steps between it and the place where it is
# needed. In a Transformer any two positions are one attention apart, however long the sentence is:
# lesson 05 measured, drew and counted these paths. (A convolution needs several layers. It applies
# the *same* weights at every position, whatever the words are. Attention computes its weights from
# the words.)
#
# ## The idea
# Two stacks. The **encoder** turns the source into vectors that know their sentence: the *memory*.
# The **decoder** turns the target, as far as it is written, into scores for the next token, and
# looks at the memory in every layer. Outside of the stacks there are only tables: tokens become
# vectors, and vectors become scores.
#
# ![Left, the encoder: the source is embedded and passes N times through self-attention and a
# feed-forward network; what leaves the last layer is the memory. Right, the decoder: the target is
# shifted right, embedded, and passes N times through causal self-attention, cross-attention, which
# reads the memory, and a feed-forward network; the generator scores the next tokens. A residual
# connection leads past each of the five sublayers to a box Add and Norm. At the arrows: ids have
# the shape (B, T), vectors (B, T, d_model), scores (B, T_q,
# target_size).](figures/transformer_way.svg)
#
# This is post-norm, as in the paper: Add & Norm stands after every sublayer. In a pre-norm model,
# like the one that we will train, the norm stands at the beginning of each sublayer, and each
# stack ends with one more.
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
# Position 3 sees BOS, z, w, ö, because the mask shows it the past and itself, and says “l”. In
# training all positions say their letter at once. This is the teacher forcing of lesson 02, and
# `shift_right` is the function from there.
#
# ## Masks from tokens
# ### Exercise 10.1 · `masks_from_tokens`
# ●●○ medium · 10 minutes · 2 points
#
# The model gets ids and nothing else. PAD says where the padding is. Make one mask for looking at
# the source, and one for the target looking at itself. `causal_mask(T, device)` of lesson 06 is
# imported.
#
# (The decoder layers of lesson 09 add the causal mask by themselves. Applying it twice changes
# nothing.)
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
# <details><summary>Hint 3 · a smaller step</summary>
#
# Take one target, `torch.tensor([[1, 8, 0]])`. Which of the columns may its last row see? Print
# your two conditions before you join them: which of them hides which column?
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
# *Dark: may be looked at. The number is 12, in a batch beside 21. Left, the padding after the
# source is hidden; right, the padding and the future.* The rows of padding at the bottom do see
# something. It does no harm: the loss leaves out what they say.
#
# ## Both ends
# Around the stacks there are three tables: one row for each source token, one for each target
# token, and the **generator**, which scores each target token by a dot product with its row. The
# last two have the same shape, (target_size, d_model). Press and Wolf (2017) made them *one*
# parameter: **tied**. If both languages share one vocabulary, all three can be one, as in the
# paper.
#
# ### Exercise 10.2 · `Translator`
# ●●● hard · 25 minutes · 5 points
#
# In stages, each earned by itself: without padding (2), with padding (1), tied tables (1), dropout
# on the embeddings (1).
#
# The whole path of the data, with **one** layer on each side for now: the figure with N = 1. The
# masks are given. Five short parts:
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
# positions 0.0, 1.0, … as a floating tensor and gives `(T, d_model)`, of their dtype.
# </details>
# <details><summary>Hint 4 · smaller steps</summary>
#
# Start with `embed`, whose four operations are in the text above, in their order. `encode` and
# `decode` then need it once each: with which table? A decoder layer takes its arguments in the
# order target, memory, target's mask, memory's mask. Which of the figure's boxes come after it?
# </details>
# <details><summary>Hint 5 · dtypes</summary>
#
# The result has the dtype of the rows: the check compares in float64, and once in bfloat16. Mind
# that bfloat16 cannot count beyond 256, where 257 becomes 256. For long texts count in that dtype
# or in float32, whichever is wider (`torch.promote_types` finds it), and convert the sinusoids.
# </details>
# <details><summary>Hint 6 · “the module has other parameters … also generator.weight”</summary>
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
# What is the second layer for, if one attention already reaches every word? It reads what the
# first has *made*. In “nine hundred thirty one”, a vector of the first layer may say “hundred,
# with nine before it”; a query of the second can ask for just that. One layer compares words, the
# next can compare what has been found out about them. Whether a trained model does so is measured
# in lesson 17.
#
# ### Exercise 10.3 · `Encoder`
# ●●○ medium · 10 minutes · 3 points
#
# In stages, each earned by itself: pre-norm (1), post-norm (1), with a mask and dropout (1).
#
# `n_layers` layers, one after the other, each with **weights of its own**. With pre-norm, every
# layer normalises what goes *in*, so nothing has normalised the sum that comes out of the last one:
# a final norm does. Post-norm layers end with a norm already. `sizes` is given: all that a layer of
# lesson 09 needs. Use `self.kind` for the layers, and hand on to each of them whatever comes beside
# x: then the decoder is your encoder with layers of another kind.
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
# <details><summary>Hint 3 · “the module has other parameters … without layers.1.”</summary>
#
# `[layer] * 6` is a list of six references to *one* object. Build a new layer each time.
# </details>

# %% exercise="Encoder"
from attention.transformer import Encoder

# %% check="Encoder" points=3
check.Encoder(Encoder)

# %% [markdown]
# The decoder adds nothing but names. Every layer looks at the same memory:

# %% given="Decoder"
from attention.transformer import Decoder

# %% [markdown]
# ## Writing
# In training the true letters are read. To translate, the model reads what it has written itself:
# BOS, then BOS and its first letter, and so on. Each time it scores a next token after *every*
# position; only the scores after the last one are new.
#
# ### Exercise 10.4 · `append_best`
# ●○○ easy · 8 minutes · 2 points
#
# One step of greedy decoding for a batch: write the best next token at the end of each row. A row
# that has ended, with EOS or with PAD after it, goes on with PAD.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Look at the last id of each row to see who has ended, and at the last scores for the best token.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# The last scores are `(B, vocab_size)`, the best tokens `(B,)`. To be joined to `(B, T)` they must
# be `(B, 1)`.
# </details>

# %% exercise="append_best"
from attention.transformer import append_best

# %% check="append_best" points=2
check.append_best(append_best)

# %% [markdown]
# ### Exercise 10.5 · `break_append_best` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# Below is a classmate's answer to the exercise before. It is right while no row has ended, and in
# the step after one ends. Find ids and scores, as they occur in a translation, for which it writes
# a wrong token.
#
# <details><summary>Hint 1 · where to look</summary>
#
# How does this answer find out that a row has ended? And yours?
# </details>
# <details><summary>Hint 2 · a smaller question</summary>
#
# The shorter of two translations is finished. What is its last id two steps later?
# </details>

# %% broken="ends_once"
from autograder.mistakes.transformer import ends_once

# %% exercise="break_append_best"
from attention.transformer import break_append_best

# %% check="break_append_best" points=1
check.break_append_best(break_append_best)

# %% [markdown]
# ## The whole model
# Stacks in the places of the layers, masks from tokens, and a loop that writes. Nothing else is
# needed. Pre-norm is the default, because it trains without much care (lesson 09; Xiong et al.,
# 2020); `pre_norm=False` is the paper's order. `translate` computes all earlier positions again at
# every step. Lesson 13 will remember them instead.

# %% given="Transformer"
from attention.transformer import Transformer

# %% [markdown]
# This is the model that we will train, with the shape of what leaves each module, and its
# parameters:

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
# In stages, each earned by itself: the layers (1.5), the tables (1), the last norms (0.5).
#
# Derive the number of parameters from the sizes. `attention_parameters(d_model, n_heads, d_head)`
# of lesson 07 counts one attention, biases included. The embeddings and the generator have no bias.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Count one attention, one feed-forward network, one norm. How many of each are in an encoder layer,
# and how many in a decoder layer? The figure shows the sublayers; each has a norm.
# </details>
# <details><summary>Hint 2 · the number of heads</summary>
#
# n_heads · d_head = d_model, so one head of d_model counts like eight heads of d_model / 8.
# </details>
# <details><summary>Hint 3 · the tables</summary>
#
# Untied: three tables. Target tied: two. All tied: one.
# </details>
# <details><summary>Hint 4 · “with pre_norm=True there is one more norm …”</summary>
#
# A norm has a scale and a shift. With pre-norm there is a final norm after each of the two stacks.
# </details>

# %% exercise="transformer_parameters"
from attention.transformer import transformer_parameters

# %% check="transformer_parameters" points=3
check.transformer_parameters(transformer_parameters)

# %% demo=true
counted = transformer_parameters(*sizes, 64, 128, n_layers=2)
print(f"the model above: {counted:,}, and PyTorch counts {translators.size(model):,}\n")
print("paper   N  d_model  d_ff        layers  + table of 37 000        total  rows by the paper")
for name, d_model, d_ff, paper in (("base", 512, 2048, 65e6), ("big", 1024, 4096, 213e6)):
    total = transformer_parameters(37000, 37000, d_model, d_ff, 6, pre_norm=False, tied="all")
    table = 37000 * d_model
    print(f"{name:<6}  6  {d_model:7d}  {d_ff}  {total - table:12,d}", end="")
    print(f"{table:19,d}  {total:11,d}  {(paper - total + table) / d_model:17,.0f}")
untied = transformer_parameters(37000, 37000, 512, 2048, 6, pre_norm=False)
print(f"\nbase with three tables: {untied:,}")

# %% [markdown]
# The paper says 65 and 213 million, with “about 37 000” tokens. We are within 3 % of it. Its two
# figures cannot both be exact: they would need vocabularies of 40 745 and 35 784 tokens, and the
# two models share one. Without tying, more than half of the base model would be tables.
#
# ## Is it right?
# Three tests that every translator should pass, on the untrained model. First: no look into the
# future through all layers together. Second: padding changes nothing. Third: it can learn one batch
# by heart. A model that fails the third has a bug, or a learning rate that does not suit it.

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
    ("scores after position 5 as before: ", before[:, 6:], after[:, 6:]),
    ("with 4 more PAD after the source:   ", before, padded),
):
    print(text, torch.allclose(one, two, atol=1e-5))
pairs = corpus.train[-8:]
losses = translators.train(model, 60 * [corpus.batch(pairs)], 60, masked_cross_entropy)
written = translators.translations(model, corpus, pairs)
right = sum(text == pair[2] for text, pair in zip(written, pairs, strict=True))
print(f"one batch of 8: loss {losses[0]:.2f} to {losses[-1]:.3f} after 60 steps; {right} right")

# %% [markdown]
# (The scores *at* position 5 stay: they come from the letters up to position 4.)
#
# ## Training
# The same data as in lessons 02 and 03: 20 000 numbers of one to six digits, English words to
# German letters; the same 300 steps of 64 numbers; the same learning rate. The whole training takes
# about a minute on one core. The cell below takes its first 60 steps and loads the weights after
# all 300, which ship with the course. Set `first = 300` to take them all yourself.
#
# ### Predict first
# After 300 steps the translator with one vector got hardly any number of five or six digits right,
# the one with attention nearly all. How will this one do on 500 numbers that it has never seen?

# %% demo=true
prediction = None  # the share translated without error, 0 to 1; None skips this

# %% demo=true
torch.manual_seed(translators.SEED)
model = Transformer(*sizes, **translators.SMALL)
first = 60  # of 300 steps; the learning rate goes as for all 300
batches = corpus.batches(translators.BATCH, translators.STEPS, translators.SEED)
batches = itertools.islice(batches, first)
losses = translators.train(model, batches, translators.STEPS, masked_cross_entropy)
kept = translators.load(model, "transformer")  # from here on the weights after 300 steps
print(
    f"loss after 50 steps {losses[min(49, len(losses) - 1)]:.3f}, in the shipped training "
    f"{kept[49]:.3f}; at its end {kept[-1]:.4f}"
)
compare(prediction, translators.exact_match(model, corpus), "held-out numbers without error")

# %% [markdown]
# `shipped.trained(name)` makes a model and loads its shipped weights. There are some of lessons
# 02 and 03, too:

# %% demo=true
shown = {
    "one vector (02)": "sequence_to_sequence",
    "attention (03)": "bahdanau_attention",
    "Transformer (10)": "transformer",
}
models = {label: shipped.trained(name)[0] for label, name in shown.items()}
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
# in training, on a logarithmic scale. Same data, same 300 steps, one run of each.* Both
# translators that look back get nearly everything right; the Transformer, with more parameters,
# ends at a lower loss in this run. That alone would be no reason to change: both can look at any
# word. What is new is that no word has to wait for another, which pays on long sentences, and on
# hardware that computes many things at once (lesson 12).
#
# ## The three uses of attention, in one forward pass
# `watch_attention` of lesson 09 collects the weights of every head while the model runs.
#
# **Predict first.** For 931: which of the three pictures has an empty upper right half?

# %% demo=true
# What is ready-made here answers exercise 10.2: it is not there while that is graded.
from attention.experiments import transformer as experiments  # noqa: E402

model = models["Transformer (10)"]
pair = pair_of[931]
one = corpus.batch([pair])
with watch_attention(model) as weights, torch.no_grad():
    model(one.source, one.target)
for name, table in weights.items():
    print(f"{name:<36} (B, H, T_q, T_k) = {tuple(table.shape)}")
words, letters = [*pair[1].split(), "EOS"], [*pair[2], "EOS"]
_ = experiments.three_uses(weights, words, letters)

# %% [markdown]
# *One head of four, head 3 of layer 1 in each stack, for 931 (both counted from 0, here and in all
# later lessons: layer 1 is the last); queries down, keys across. Left: words look at words.
# Middle: what is read looks at itself and at what was read before; the future is empty. Right: the
# letter to be written looks at the words.* On the right is the alignment of lesson 03 again,
# crossing included: *neun* looks at *nine*, *hundert* (but for its first letter) at *hundred*,
# then the “e” of *ein* at *one*, and *dreißig* back at *thirty*; most letters in between look at
# *hundred* once more. But this is one head. Here are all of the cross-attention, layer by layer:

# %% demo=true
axes = plots.panels(rows=2, columns=4, width=2.5, height=4.6)
for layer, row in enumerate(axes):
    heads = weights[f"decoder.layers.{layer}.cross_attention"][0]  # (H, T_q, T_k)
    for head, ax in enumerate(row):
        title = f"layer {layer}, head {head}"
        plots.heatmap(heads[head], ax, title, letters, words, colorbar=False)
        ax.set(xlabel="", ylabel="")
        ax.tick_params(axis="x", rotation=60)
e_of_ein = pair[2].index("tein") + 1
last = weights["decoder.layers.1.cross_attention"][0, :, e_of_ein]  # (H, T_k)
print("the “e” of ein, last layer, weight on:", *words)
for head, shares in enumerate(last.tolist()):
    print(f"head {head}:", *(f"{share:.2f}" for share in shares))
print("mean:  ", *(f"{share:.2f}" for share in last.mean(dim=0).tolist()))

# %% [markdown]
# *Cross-attention of both layers, all heads, for 931.* Look at the “e” of *ein* in layer 1, the
# last: two heads look at *thirty*, two at *one*, each with nearly all its weight. Their mean would
# show a letter that looks at both words half and half, and no head does that. Look at the heads
# before you average them. A picture cannot tell what each of them is for; lesson 17 asks.


# %% demo=true
def draw(layer, head):
    """Draw one head of the cross-attention."""
    table = weights[f"decoder.layers.{layer}.cross_attention"][0, head]
    ax = plots.panels(width=4.2, height=6.0)
    plots.heatmap(table, ax, f"layer {layer}, head {head}", letters, words)


sliders.slider(draw, layer=(0, 1), head=(0, 3))

# %% [markdown]
# The [glass translator](../../book/_build/html/glass.html) shows this same model at work: type a
# number, and every score, weight and beam is there, with its arithmetic. It is a page of the
# course's book; `make glass` makes it alone.

# %% [markdown]
# ## Break it: no positions
# Attention does not know the order of its keys (lesson 05). Positions tell it, so let us take them
# away from the source, in training and in translation, and keep everything else: data, steps,
# sizes. And since lesson 08 had three kinds of positions, let us compare them too, three runs
# each. The results are recorded by `python -m attention.experiments transformer`.
#
# ### Predict first
# Without positions on the source, what share of held-out numbers will be right? And what will the
# wrong ones look like?

# %% demo=true
prediction = None  # the share translated without error, 0 to 1; None skips this

# %% demo=true
right = experiments.kinds_of_positions()
compare(prediction, sum(right["none"]) / len(right["none"]), "without positions, share right")

# %% [markdown]
# *Share of the held-out numbers translated without error, by their number of digits. Dots: single
# runs, three of each kind, moved apart a little; lines: their mean.* All three kinds of positions
# work; after these 300 steps the sinusoidal ones are a little ahead in all runs, and the learned
# ones a little behind. Without positions on the source, numbers of two digits are still right,
# since the words say it all: *thirty* and *one* can only be 31. But “nine hundred thirty one” and
# “one hundred thirty nine” hold the same words, so the encoder cannot tell them apart, and the
# model guesses: about half of the numbers of three digits are right, and fewer of the longer ones,
# whose words allow more orders. At least three in four errors are correct German for another order
# of exactly these words. The decoder kept its positions, and the letters come out in a good order.
#
# ## Break it: no shift
# Leave out the shift: let the decoder read the very letters that it should say. What will the loss
# do, and what will it translate?


# %% demo=true
class Peeking(Transformer):
    def forward(self, source, target):
        source_mask, target_mask = masks_from_tokens(source, target)
        memory = self.encode(source, source_mask)
        return self.decode(target, memory, target_mask, source_mask)


few = corpus.test_by_digits(1)[3]
for kind in (Transformer, Peeking):
    ends = []
    for seed in range(3):
        torch.manual_seed(seed)
        other = kind(*sizes, **translators.SMALL)
        batches = corpus.batches(16, 25, seed)
        ends.append(translators.train(other, batches, 25, masked_cross_entropy)[-1])
    label = "without the shift" if kind is Peeking else "with the shift"
    print(f"{label:<18} loss after 25 steps, three seeds:", *(f"{end:.3f}" for end in ends))
print("wanted:", few[0][2], "  written:", translators.translations(other, corpus, few)[0][:40])

# %% [markdown]
# Without the shift the loss is nearly 0 after 25 steps: to copy is easy. In translation there is no
# true letter to copy. The model guesses a first one, reads it, and says it again until it is
# stopped. A loss that is too good is a reason to look for a leak, but the loss alone does not prove
# one. The first of the three tests above does.
#
# ## Limits
# Every query looks at every key, so twice the length costs four times the scores (lesson 18). All
# positions learn at once, but a translation is still written one token after the other. The tables
# know the tokens they were made for: a word that was never seen has no row. The maps show where a
# head looks, not why, and not what the model would do if it looked elsewhere (lesson 17). And
# numbers are an easy language: that this model is right on nearly all of them says nothing about
# sentences.
#
# ## Summary
# An encoder describes the source, a decoder reads what is written so far and looks at that
# description in every layer, and three tables lead from tokens to vectors and back. Attention is
# used in three ways, which differ only in where queries, keys and masks come from; without
# positions it mixes up the order of the words. Targets are shifted right, and the future is
# masked, so that all positions learn at once and none sees what it should say. `autograder collect`
# gathers what you have passed: with the lessons up to 13, it can be trained as a Transformer of
# your own.
#
# **Next** [11 · What does it take to train one?](../11_training/11_training.ipynb) A learning-rate
# schedule, batches counted in tokens, and a step that stays the same however it is divided.
#
# ## Open questions
# No points, no check; the notebook has what is needed.
# 1. Take the positions away from the *decoder* instead (`embed` knows which table it was given).
#    Does it lose as much as the source did? What does the causal mask tell it?
# 2. `watch_attention(model, {name: gates})` multiplies each head by a gate. Which single head of
#    the cross-attention costs most when it is switched off? And a whole layer of them?
# 3. Give the trained model the English words in reverse order. What does it write?
# 4. **The model on one page.** You have written every piece in lessons 05 to 10. Put them together
#    in one file of at most 120 lines, without any import from `attention`: load the weights of
#    `shipped.trained("transformer")` into it, and see that its scores are the same.

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. Not tried here. Decoder-only language models learn without any positions nearly as well: with a
#    causal mask each position sees a different number of keys, and can count them (A. Haviv et al.,
#    2022, [arXiv:2203.16634](https://arxiv.org/abs/2203.16634)). The encoder has no such mask.
# 2. On three times 100 held-out numbers, of which the whole model gets .99 to 1.00: without one
#    head of layer 0, .94 to 1.00 are right; of layer 1, .89 to .98, but .58 to .62 without head 2.
#    Without all heads of layer 0, .25 to .41 are right, of layer 1 at most .03. Most single heads
#    can be spared, a layer cannot (`python -m attention.experiments transformer`, “heads switched
#    off”); lesson 17 goes on from here.
# 3. Hardly a number is right: 6, 2 and 0 of three times 100. But 37, 40 and 45 of the others are
#    translations of other numbers with exactly these words. The model reads both, words and order
#    (“words reversed” of the same command).
# 4. Below; it is also the file `docs/transformer_on_one_page.py`, which a test compares with the
#    library: same weights, same scores, same gradients.
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
# The small model above has three tables of its own. Tying the generator to the target embedding
# saves 1 536 of its 172 864 parameters, not worth a word; in the paper's models each table that is
# saved is 19 or 38 million. Does it cost anything?
#
# Take an *untrained* model, tied. A letter's row comes in, times √d_model; the layers add a little
# to it along the residual path, and in the end it is compared with the rows of all letters. Which
# letter will it say? That may depend on how long the rows are beside what is added to them. So two
# things are varied: the generator's table, its own or tied, and the length of the rows of both
# target tables, as in a model with three tables (“long”) or a tenth of that (“short”).

# %% demo=true
_ = experiments.tied_tables()

# %% [markdown]
# *Loss against step, the mean of every ten, for both generators and both lengths; a line for each
# of three seeds, recorded by `python -m attention.experiments transformer`.* With long rows an
# untrained tied model is a parrot: whatever it has read is most similar to itself, but hardly ever
# what comes next. With all three seeds it learns more slowly: after 300 steps it gets .31 to .56
# of the numbers of six digits right, and its loss is 13 to 40 times that of tables apart. With
# short rows it gets .97 to .99 right, as many as tables apart that begin as short, and its loss is
# less than twice theirs. So nearly all of it is the start, not the tie. (Short rows are also quiet
# beside the positions. That alone delays the first steps, as the grey lines show.)
#
# `Translator` begins with long rows all the same, as the paper's own code does: numbers say nothing
# about sentences, and 24 letters have nothing to win from a tie. With 37 000 tokens, most of them
# rare, there is something: Press and Wolf found better language models with fewer parameters, and
# translators that were as good at less than half the size. Tie, and then try both lengths.
#
# ## References
# - A. Vaswani et al. (2017). *Attention is all you need.*
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - O. Press, L. Wolf (2017). *Using the output embedding to improve language models.*
#   [arXiv:1608.05859](https://arxiv.org/abs/1608.05859)
# - R. Xiong et al. (2020). *On layer normalization in the Transformer architecture.*
#   [arXiv:2002.04745](https://arxiv.org/abs/2002.04745)
