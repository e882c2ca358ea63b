# %% [markdown]
# # 02 · What fits into one vector?
#
# Read a sentence to its end, close the book, and write its translation from memory. This is how the
# first neural translators worked. You will build one, watch it learn, and find the length at which
# its memory gives out. Attention was invented to repair exactly this.
#
# **After this lesson** you can
# - write a step of a **gated recurrent unit** (GRU) and say what its gates do,
# - encode padded batches without reading the padding,
# - train with **teacher forcing** and a loss that ignores padding, and decode greedily,
# - measure the **fixed-length bottleneck**, and say why recurrent networks are slow.
#
# **Time** 80 minutes, ★ 10 more · **Points** 16 · **GPU** not needed · **You need** lesson 00

# %%
import math

import torch
from torch import nn

from attention.experiments import recorded
from attention.experiments import sequence_to_sequence as experiments
from attention.provided import demand
from attention.provided.data.numbers import numbers
from attention.provided.data.tokens import BOS, EOS, PAD
from attention.provided.figures import plots, seeds
from attention.provided.measuring import timing
from attention.provided.models import translators
from attention.provided.predictions import compare
from attention.provided.training_steps import one_thread
from attention.train import shipped
from autograder import check

# %% [markdown]
# ## What fails without this idea
# Translation is a function from a sequence to a sequence. Lesson 01 averaged its inputs, and an
# average forgets the order. For these two numbers that is fatal:

# %%
words_of_numbers = ("two", "three", "hundred", "thousand")
vectors = dict(zip(words_of_numbers, torch.eye(4).tolist(), strict=True))
for text in ("three hundred two thousand", "two hundred three thousand"):
    words = [vectors[word] for word in text.split()]
    print(
        f"{text:<28}", [round(sum(column) / len(words), 2) for column in zip(*words, strict=True)]
    )

# %% [markdown]
# The averages are the same, the numbers are not. We need something that reads *in order*, whatever
# the length of the input, and that writes an output of *another* length.
#
# ## The idea
# A **recurrent** network keeps a state, a vector of fixed size. It reads one word, updates the
# state, reads the next. What is left after the last word is the **encoding**. A second recurrent
# network, the **decoder**, starts from the encoding and writes letter after letter.
#
# ![Four words are read by a chain of encoder states h₁ to h₄. The last one becomes one vector of
# always 64 numbers. From it a chain of decoder states s₁ to s₄ writes z, w, e, i, and so
# on.](figures/bottleneck.svg)
#
# Sutskever and colleagues, and Cho and colleagues, both published this in 2014. Note the black box:
# everything that the decoder is told about the source must fit into it.
#
# ### The data
# From here to lesson 14 we translate **numbers in words**, English to German: words on one side,
# letters on the other. There is as much data as we like, an answer is right or wrong, and one thing
# is hard: German says *one-and-thirty* for 31.

# %% demo=true
corpus = numbers()
for number, english, german in corpus.test[30::170]:
    print(f"{number:>6}  {english}\n        {german}")
batch = corpus.batch(corpus.test[20:23])
print(f"\n{len(corpus.train)} pairs to train on, {len(corpus.test)} others to test with")
print("source ids (B, T_k):", *batch.source.tolist(), sep="\n  ")
print("lengths (B,):", batch.lengths.tolist())

# %% [markdown]
# Short sequences are filled up with `PAD` (0). Every sequence ends in `EOS` (2), which its length
# counts. `BOS` (1) tells the decoder to begin. About one number in ten is a **test number**; which
# ones is decided by the number alone, so no test number is ever trained on, in any lesson.
#
# ## A state that forgets on purpose
# A plain recurrent network overwrites its state at every step. A **gated recurrent unit** mixes
# old and new instead, and learns how much of each. For an input $x$ and a state $h$:
#
# $$\begin{aligned}
# r &= \sigma(W_{xr}\,x + b_{xr} + W_{hr}\,h + b_{hr}) && \text{reset: how much past to look at} \\
# z &= \sigma(W_{xz}\,x + b_{xz} + W_{hz}\,h + b_{hz}) && \text{update: how much past to keep} \\
# n &= \tanh\big(W_{xn}\,x + b_{xn} + r \odot (W_{hn}\,h + b_{hn})\big) && \text{candidate} \\
# h' &= (1 - z) \odot n + z \odot h && \text{mixture}
# \end{aligned}$$
#
# ($\odot$ multiplies two vectors number by number. This is PyTorch's GRU: it resets $W_{hn}\,h$,
# where Cho and colleagues, and many textbooks, reset $h$ before the product.)
#
# | quantity | shape | note |
# |---|---|---|
# | `x` | `(B, d_x)` | one input per sequence of the batch |
# | `h`, `r`, `z`, `n`, $h'$ | `(B, d)` | gates lie between 0 and 1 |
# | `W_x`, `b_x` | `(3d, d_x)`, `(3d,)` | three blocks, one below the other: r, z, n |
# | `W_h`, `b_h` | `(3d, d)`, `(3d,)` | the same |
#
# By hand, with a state of one number that is 0.8, and everything that the gates see summed up:


# %%
def sigmoid(number):
    return 1 / (1 + math.exp(-number))


h_by_hand = 0.8
for seen in (-4.0, 0.0, 4.0):
    z_by_hand, n_by_hand = sigmoid(seen), math.tanh(-0.5)
    mixed = (1 - z_by_hand) * n_by_hand + z_by_hand * h_by_hand
    print(
        f"gate sees {seen:4.1f}   z {z_by_hand:.2f}   candidate {n_by_hand:.2f}   h' {mixed:5.2f}"
    )

# %% [markdown]
# With z near 0 the state is replaced, with z near 1 it is kept.
#
# ### Exercise 2.1 · `gru_step`
# ●●○ medium · 12 minutes · 3 points
#
# In stages, each earned by itself: the update gate (1), the reset gate (1), the biases (1).
#
# Write one step for a whole batch.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Two matrix products give everything that the three parts need: one of all weights with x, one
# with h. Cut each result into three pieces.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(B, d_x)` times the transposed `(3d, d_x)` is `(B, 3d)`. `tensor.chunk(3, dim=1)` cuts it into
# three tensors `(B, d)`, in the order r, z, n.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# Six pieces are on the table, three from x and three from h. Which two make r? Which two make z?
# And which of the three equations does *not* simply add its two pieces?
# </details>
# <details><summary>Hint 4 · “RuntimeError: mat1 and mat2 shapes cannot be multiplied”</summary>
#
# The weights are stored as (outputs, inputs), as in `nn.Linear`. Transpose them with `.T`.
# </details>

# %% exercise="gru_step"
from attention.sequence_to_sequence import gru_step

# %% check="gru_step" points=3
check.gru_step(gru_step)

# %% [markdown]
# ### Predict first
# A state of 1.0 reads nothing but zeros for 80 steps. After how many steps is half of it gone, if
# the update gate stands at 0.5? At 0.9? And at 0.99?

# %%
prediction = None  # steps until half is gone at z = 0.99; None skips this

# %% demo=true
memory = {}
for gate in (0.5, 0.9, 0.99):
    h, zeros = torch.ones(1, 1), torch.zeros(3, 1)
    biases = torch.tensor([0.0, math.log(gate / (1 - gate)), 0.0])
    memory[f"z = {gate}"] = [1.0]
    for _ in range(80):
        h = gru_step(torch.zeros(1, 1), h, zeros, zeros, biases, torch.zeros(3))
        memory[f"z = {gate}"].append(h.item())
ax = plots.lines(range(81), memory, xlabel="steps", ylabel="what is left of the state")
half = {name: sum(left > 0.5 for left in row) for name, row in memory.items()}
print("half is gone after", ", ".join(f"{steps} ({name})" for name, steps in half.items()))
compare(prediction, half["z = 0.99"], "steps at z = 0.99")

# %% [markdown]
# *What is left of a state after up to 80 steps under three settings of the update gate.* A gate can
# hold on for long, but as long as z is below 1, not for ever; and the share of the state that is
# kept is not there for what is new.
#
# Running the GRU over a sequence is a loop over its steps. This function is given:

# %% given="run_gru"
from attention.sequence_to_sequence import run_gru

# %% [markdown]
# ### Exercise 2.2 · `encode`
# ●○○ easy · 6 minutes · 2 points
#
# The batch was filled up with padding, and the GRU ran over it: after its true end, a short
# sequence's state goes on changing. Pick each sequence's state *after its last true token*.
#
# <details><summary>Hint 1 · the idea</summary>
#
# After n tokens, the state stands at index n − 1, and n differs from row to row.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# From `(B, T, d)` to `(B, d)`. Two index tensors of shape `(B,)`, used together, pick one element
# per row: `a[rows, columns]`.
# </details>
# <details><summary>Hint 3 · the result has shape (B, B, d)</summary>
#
# A colon for the rows takes *all* rows for each of the B steps. Give the rows as a tensor as well.
# </details>

# %% exercise="encode"
from attention.sequence_to_sequence import encode

# %% check="encode" points=2
check.encode(encode)

# %% [markdown]
# ## Teaching the decoder
# The decoder's job at every step: given the encoding and the letters so far, say which letter comes
# next. While training, the "letters so far" are the *true* ones, whatever the decoder would have
# written itself. This is **teacher forcing**. All steps can be scored at once, and one early error
# does not spoil the rest.
#
# | step | 1 | 2 | 3 | 4 | 5 |
# |---|---|---|---|---|---|
# | reads | BOS | z | w | e | i |
# | should predict | z | w | e | i | EOS |
#
# ### Exercise 2.3 · `shift_right`
# ●○○ easy · 4 minutes · 2 points
#
# Make the row “reads” of this table from the row “should predict”.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Everything moves one step to the right. BOS enters on the left, the last column drops out.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# A column of BOS is `(B, 1)`, the target without its last column `(B, T - 1)`. Side by side they
# are `(B, T)` again. `torch.full_like` makes a tensor like another one.
# </details>
# <details><summary>Hint 3 · “the input for the target 5 6 EOS is wrong”</summary>
#
# `roll` moves the last column round to the front. What should stand there?
# </details>

# %% exercise="shift_right"
from attention.sequence_to_sequence import shift_right

# %% check="shift_right" points=2
check.shift_right(shift_right)

# %% [markdown]
# ### Exercise 2.4 · `masked_cross_entropy`
# ●●○ medium · 10 minutes · 3 points
#
# In stages, each earned by itself: without padding (1), with padding (1), huge scores and −∞
# (1).
#
# The loss of one step is $-\log p(\text{true letter})$. Average it over all *letters*: neither over
# padding, nor sequence by sequence.
#
# $$\text{loss} = \frac{1}{N}\sum_{\text{target}_{bt} \ne \text{PAD}}
# -\log\,\text{softmax}(\text{logits}_{bt})_{\text{target}_{bt}}$$
#
# with $N$ the number of letters that are not padding. `F.cross_entropy` can do this; write it out.
# Leave out what does not count; do not multiply it by 0. A model may forbid PAD with a score of −∞.
# Then the loss at padding is ∞, and 0 · ∞ is NaN. Logits may be of any size: the loss stays finite.
# If no letter is left, the loss is 0.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Logarithms of all probabilities, pick the true ones, drop those at padding, average the rest.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Logits `(B, T, vocab_size)`; probabilities are shared along the last axis. Picking one entry per
# position: `gather` along dim 2 with an index of shape `(B, T, 1)`. A boolean mask `(B, T)` then
# selects.
# </details>
# <details><summary>Hint 3 · a smaller question</summary>
#
# You have a loss for every position, `(B, T)`, and a mask of the same shape. Which numbers does
# `losses[mask]` hold, and how many are they? And if all is padding?
# </details>
# <details><summary>Hint 4 · “RuntimeError: Index tensor must have the same number …”</summary>
#
# `gather` wants an index with as many axes as the tensor: `target.unsqueeze(2)`.
# </details>

# %% exercise="masked_cross_entropy"
from attention.sequence_to_sequence import masked_cross_entropy

# %% check="masked_cross_entropy" points=3
check.masked_cross_entropy(masked_cross_entropy)

# %% [markdown]
# ### Exercise 2.5 · `break_masked_cross_entropy` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# A classmate takes the mean of each sequence, without its padding, and then the mean of the batch.
# On some batches this is the same number. Find logits and targets for which it is not.
#
# <details><summary>Hint 1 · where to look</summary>
#
# How much does one token of a long sequence count in each of the two?
# </details>
# <details><summary>Hint 2 · a smaller question</summary>
#
# Two sequences, one of them short. When does it make no difference after all?
# </details>

# %% broken="averages_each_sequence_first"
from autograder.mistakes.sequence_to_sequence import averages_each_sequence_first

# %% exercise="break_masked_cross_entropy"
from attention.sequence_to_sequence import break_masked_cross_entropy

# %% check="break_masked_cross_entropy" points=1
check.break_masked_cross_entropy(break_masked_cross_entropy)

# %% [markdown]
# ## Writing without a teacher
# When the decoder translates, nobody tells it the true letters. It reads what it wrote itself.
# One step is given. Besides the last letter it reads the **context**, what it knows of the source:
# here the encoding, again and again, so that it need not carry it along.

# %% given="decoder_step"
from attention.sequence_to_sequence import decoder_step

# %% [markdown]
# ### Exercise 2.6 · `greedy_decode`
# ●●● hard · 15 minutes · 3 points
#
# In stages, each earned by itself: rows that end together (1), rows that end one by one (1), the
# number of steps (1).
#
# Write the loop: start with BOS (given), take the most probable letter at every step, and read it
# at the next. A row that has written EOS gets PAD from then on; when all rows have ended, stop.
# "Greedy" means that it never reconsiders. Lesson 13 will.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Three things change from step to step: the tokens just written, the state, and which rows have
# ended. The context and the weights stay.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Logits `(B, vocab_size)`, tokens and `ended` `(B,)`. The list of n tensors `(B,)` becomes `(B, n)`
# with `torch.stack(…, dim=1)`.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# Write it for one sequence first, on paper: what is read at step 1, and at step 2? When does the
# loop end? Then ask what a row that has ended must write while another goes on, and which operation
# changes the tokens of those rows only.
# </details>
# <details><summary>Hint 4 · the batch is written differently from each sequence alone</summary>
#
# One row must not influence another: a row that waits gets PAD, and the loop ends only with the
# last row. Is the new state carried on, and is the token read that was just written?
# </details>

# %% exercise="greedy_decode"
from attention.sequence_to_sequence import greedy_decode

# %% check="greedy_decode" points=3
check.greedy_decode(greedy_decode)

# %% [markdown]
# ## The whole translator
# Encoder, bottleneck, decoder. `nn.Embedding` is a table with one learned vector for each id:
# looking up a row turns a word into something that a network can read. `nn.GRU` does what `run_gru`
# does, in compiled code. The rest is yours (`reverse_source` belongs to the starred part).

# %% given="Seq2Seq"
from attention.sequence_to_sequence import Seq2Seq

# %% [markdown]
# There are 24 kinds of tokens on the German side. If all were equally probable, the loss would be
# log 24 ≈ 3.18. Train for 300 steps of 64 pairs, with your loss. All lengths from 1 to 6 digits are
# equally frequent.

# %% demo=true
torch.manual_seed(translators.SEED)
model = Seq2Seq(len(corpus.source_vocabulary), len(corpus.target_vocabulary))
batches = corpus.batches(translators.BATCH, translators.STEPS, translators.SEED)
losses = translators.train(model, batches, translators.STEPS, masked_cross_entropy)

# %% demo=true
ax = plots.lines(
    range(1, len(losses) + 1), {"loss": losses}, xlabel="steps", ylabel="nats a letter"
)
ax.axhline(math.log(len(corpus.target_vocabulary)), color=plots.GREY, linestyle="--")
ax.set_ylim(0, None)
ax = ax.set_title("all letters equally probable: dashed")

# %% [markdown]
# *Loss, in nats (natural logarithms) a letter, against steps: from about log 24 it falls to
# about 0.12.* The geometric mean of the probabilities that true letters get is then exp(−0.12), or
# nearly 90 %. Is that good? Look at translations of numbers that it has never seen.

# %% demo=true
pairs = [pair for chosen in corpus.test_by_digits(at_most=2).values() for pair in chosen]
for (number, _, german), text in zip(
    pairs, translators.translations(model, corpus, pairs), strict=True
):
    print(f"{number:>6}  {'right' if text == german else 'wrong'}  {text[:70]}")

# %% [markdown]
# Up to four digits these are right. (All but 0: it is a test number, so the word "zero" never came
# up in training.) The long ones begin well and go astray: the spelling is German, the number is
# another. It has learned the language, but not to keep the source.
#
# ## The bottleneck, measured
# How many numbers does it translate without any error, by length?

# %% demo=true
shares = translators.accuracy_by_digits(model, corpus)
ax = plots.accuracy({"64 numbers, 300 steps": shares})
print("  ".join(f"{digits} digits {share:.2f}" for digits, share in shares.items()))

# %% [markdown]
# *Share of test numbers translated without error against their number of digits.* Two and three
# digits come through. With four they begin to get lost, and of five and six hardly any number is
# right. All lengths were equally frequent in training. The source grows, the vector does not: this
# is the **fixed-length bottleneck**.
#
# But is it the *size*? Change one thing at a time: the width of the model, vector and decoder
# alike, or the number of steps. It was done before, for three seeds each; the results are recorded,
# and `python -m attention.experiments sequence_to_sequence` runs it all again.
#
# ### Predict first
# With 64 numbers and 300 steps, hardly a five-digit number was right. How many are right, in the
# median of three seeds, with the same 64 numbers and 1000 steps?

# %%
prediction = None  # a number from 0 to 1; None skips this

# %% demo=true
rows = recorded.read("sequence_to_sequence", "size x steps")
designs = {"the size, 300 steps": [(32, 300), (64, 300), (128, 300)]}
designs["the steps, 64 numbers"] = [(64, 300), (64, 1000)]
axes = plots.panels(1, 2, width=3.9, height=2.8)
for ax, (title, points) in zip(axes, designs.items(), strict=True):
    found = {f"{d}, {n} steps": seeds.where(rows, d_state=d, steps=n) for d, n in points}
    seeds.bands(found, ax, f"changed: {title}", legend=False)
    plots.legend(ax, fontsize=8, loc="lower left")
    for label, runs in found.items():
        shown = "   ".join(f"{share:.2f}" for share in seeds.at_digits(runs, 5))
        print(f"{label:<16} at five digits, seeds 0, 1, 2:  {shown}")
longer, _ = shipped.trained("sequence_to_sequence_3000_steps")
shares = translators.accuracy_by_digits(longer, corpus)
alone = f"{shares.get(5, 0):.2f}, and at six {shares.get(6, 0):.2f}"
print(f"64, 3000 steps   at five digits, seed 0 alone:   {alone}")
five = seeds.at_digits(seeds.where(rows, d_state=64, steps=1000), 5)
compare(prediction, sorted(five)[1], "five digits, 64 numbers, 1000 steps")

# %% [markdown]
# *Share translated without error against digits, for three sizes of the vector, and for two numbers
# of steps: the median of three seeds, and the band from the worst to the best. 3000 steps are
# printed only, for one seed.* Either helps, in every seed. A model twice as wide lifts five digits
# from at most 0.06 to 0.33 or more (with a wider decoder, too: lesson 03 compares with the decoder
# kept); the *same* 64 numbers, trained for 1000 steps, to 0.43 or more. So 64 numbers are enough
# for five digits; what takes time is learning to encode into them and decode again.
#
# ## A long way
# ![A chain of seven states. What the first word says reaches the last word only after six steps,
# each of which waits for the one before.](figures/interaction_distance.svg)
#
# What one word says reaches another after as many steps as they are places apart. This is the
# **linear interaction distance** of recurrent networks. How much does a word still matter n
# steps later? Ask the gradient: how strongly does the encoding change if that word changes? (A
# gradient wants one number, so the 64 numbers of an encoding are added up with random weights, a
# draw for each row: no direction is preferred.) Let the encoder read 64 rows of 40 random words.

# %% demo=true
torch.manual_seed(translators.SEED)
untrained = Seq2Seq(len(corpus.source_vocabulary), len(corpus.target_vocabulary))
ax = experiments.reach({"before training": untrained, "after training": model})
runs = seeds.where(rows, d_state=64, steps=300)
for name in ("before", "after"):
    print(f"{name:<7} 20 steps back, seeds 0, 1, 2:", *(f"{run[name]:.5f}" for run in runs))

# %% [markdown]
# *Influence of a word on the encoding against the number of steps since it was read, that of the
# last word being 1; the vertical scale is logarithmic.* Before training, every five words divide
# the influence by about ten: for the encoding, a word 20 steps back might as well not be there.
# After 300 steps it keeps about a tenth of the last word's influence, with every seed. The gates
# have learned to hold on, but all words share the same 64 numbers. Lesson 05 measures the same for
# attention.
#
# ## And a slow one
# State t needs state t − 1. No number of processors changes that: the steps must be taken one after
# the other. Compare with a layer that treats all positions alike. We time both on sequences of
# growing length, with the same number of multiplications per position.

# %% demo=true
gru, layer = nn.GRU(64, 64, batch_first=True), nn.Linear(64, 6 * 64)
lengths, measured = (25, 50, 100, 200, 400, 800), {"recurrent": [], "all positions at once": []}
with torch.no_grad(), one_thread():
    for T in lengths:
        x = torch.randn(1, T, 64)
        measured["recurrent"].append(timing.milliseconds(lambda x=x: gru(x)))
        measured["all positions at once"].append(timing.milliseconds(lambda x=x: layer(x)))
title = "one sequence, one core of the machine that built this notebook"
ax = plots.lines(lengths, measured, None, title, "length T", "milliseconds")

# %% [markdown]
# *Time against sequence length for a GRU and for a linear layer with as many multiplications.* The
# GRU's time grows with the length, a step at a time. The layer does the same work in one matrix
# product, many times faster. This **lack of parallelism** is the second reason why lessons 05 to 10
# do without recurrence; lesson 12 measures it on whole models.
#
# ## Break it
# What if `encode` took the state at the *padded* end? Translate three test numbers of two digits in
# a batch with longer and longer companions.


# %% demo=true
def encode_at_the_padded_end(states, lengths):
    return states[:, -1]


right_encode, few = encode, [pair for pair in corpus.test if 20 < pair[0] < 100][:3]
for digits in (2, 4, 6):
    companion = corpus.test_by_digits(1)[digits]
    encode = encode_at_the_padded_end
    broken = translators.translations(model, corpus, few + companion)[:3]
    encode = right_encode
    print(f"beside a number of {digits} digits:", *(text[:24] or "(nothing)" for text in broken))
print("with the true ends:          ", *translators.translations(model, corpus, few))

# %% [markdown]
# The same three numbers, other translations: the result depends on who else is in the batch. Such
# errors give no message, and a training run hides them well.
#
# ## Limits
# One vector of fixed size for sources of any length: what does not fit, or was not learned to be
# kept, is lost before the first letter is written. Nothing in the model says which word a letter
# came from. The steps cannot be taken side by side, neither in training nor in use. And numbers are
# a friendly language: a few dozen words, no ambiguity. Results on sentences are in lesson 14.
#
# ## Summary
# An encoder reads a sequence of any length into one vector, and a decoder writes from it, trained
# with the true letters shifted right and a loss that leaves padding out. After 300 steps accuracy
# falls steeply with the length of the source. A wider model and longer training both move the fall
# to longer numbers. A recurrent network also needs as many steps as there are words, both for
# information to travel and for the computer to wait.
#
# **Next** [03 · What if the decoder could look
# back?](../03_bahdanau_attention/03_bahdanau_attention.ipynb) The same data, the same steps, and a
# context of its own for every letter.
#
# ## Open questions
# 1. How exactly must the decoder know the 64 numbers? Round the encoding to multiples of 0.1, 0.25
#    or 0.5 before decoding (rebind `encode`, as "Break it" does), and measure the accuracy by
#    length.
# 2. The loss is about 0.12 nats a letter, and yet hardly a six-digit number is right. Which share
#    of their *letters* is right when the decoder is told the true ones before them? How many
#    letters must be right in a row?

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. Hardly at all, for the model of this notebook. As it is, 0.98 of the three-digit and 0.43 of
#    the four-digit numbers are right; with multiples of 0.1 it is 0.97 and 0.44, of 0.25 0.96 and
#    0.42, of 0.5 (five possible values for each number) 0.95 and 0.36. Room is not what it lacks.
# 2. Of the letters of six-digit numbers 94 % are right when the true ones before are given, and a
#    number has about 52 of them, EOS included. If errors came independently, 0.935 to the power of
#    52, or 3 %, of the numbers would be right.
#
# </details>

# %% [markdown]
# ## ★ Read it backwards
# Sutskever and colleagues read the source *backwards*: the decoder writes the beginning first, and
# now the beginning of the source is what the encoder has read last. Their error fell. They write
# that they have no complete explanation; they believe that the many short ways between the first
# words of both sides make the problem easier to learn.
#
# ### Exercise 2.7 · `reverse_source` ★
# ●●○ medium · 8 minutes · 2 points
#
# Reverse each sequence within its true length, and leave the padding after it. Lesson 03 uses the
# function too, for vectors.
#
# <details><summary>Hint 1 · the idea</summary>
#
# `flip` on the whole row would bring the padding to the front. Flip only the first n tokens.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# The result has the shape of the source, `(B, T)` or `(B, T, d)`. One row is `(T,)` or `(T, d)`:
# in both cases the steps are its axis 0.
# </details>
# <details><summary>Hint 3 · a smaller question</summary>
#
# How do you flip the first three entries of one row? Do it for every row with its own length: into
# which tensor may you write?
# </details>
# <details><summary>Hint 4 · “the values are right, but the function changes its inputs”</summary>
#
# Writing into a row of the source changes the caller's tensor. `clone()` makes a copy.
# </details>

# %% exercise="reverse_source"
from attention.sequence_to_sequence import reverse_source

# %% check="reverse_source" points=2
check.reverse_source(reverse_source)

# %% demo=true
backwards = seeds.where(recorded.read("sequence_to_sequence", "reversed source"), steps=300)
found = {
    "source as it is": seeds.where(rows, d_state=64, steps=300),
    "source reversed": backwards,
}
ax = seeds.bands(found)
for label, runs in found.items():
    for digits in (4, 5):
        print(f"{label}, {digits} digits:", *(f"{x:.2f}" for x in seeds.at_digits(runs, digits)))

# %% [markdown]
# *Share translated without error against digits, with the source as it is and reversed; everything
# else is the same: the median of three seeds, and the band from the worst to the best.* At four
# digits every reversed run is better than every other; at five little is gained. The experiment
# says *that* it helps here, not why.
#
# ## References
# - I. Sutskever, O. Vinyals, Q. V. Le (2014). *Sequence to sequence learning with neural networks.*
#   [arXiv:1409.3215](https://arxiv.org/abs/1409.3215)
# - K. Cho et al. (2014). *Learning phrase representations using RNN encoder–decoder for statistical
#   machine translation.* [arXiv:1406.1078](https://arxiv.org/abs/1406.1078)
# - K. Cho, B. van Merriënboer, D. Bahdanau, Y. Bengio (2014). *On the properties of neural machine
#   translation: encoder–decoder approaches.* [arXiv:1409.1259](https://arxiv.org/abs/1409.1259)
