# %% [markdown]
# # 02 · What fits into one vector?
#
# Read a sentence to its end, close the book, and write its translation from memory. This is how the
# first neural translators worked. You will build one, and find the length at which its memory
# fails. Attention was invented to fix this.
#
# **After this lesson** you can
# - write a step of a **gated recurrent unit** (GRU) and say what its gates do,
# - train with **teacher forcing** and a loss that ignores padding, in a loop of your own,
# - translate greedily, letter by letter,
# - measure the **fixed-length bottleneck**, and say why recurrent networks are slow.
#
# **Time** 78 minutes, ★ 10 more · **Points** 14 · **GPU** not needed · **You need** lesson 00

# %%
import math

import torch
from torch import nn

from attention.experiments import sequence_to_sequence as experiments
from attention.provided.data.tokens import BOS, EOS, PAD
from autograder import check

# %% [markdown]
# ## An average has no order
# Lesson 01 averaged its inputs, and an average forgets their order. Take these two numbers:

# %%
vocabulary = ["two", "three", "hundred", "thousand"]
for text in ("three hundred two thousand", "two hundred three thousand"):
    vectors = [[float(word == one) for one in vocabulary] for word in text.split()]
    print(f"{text:<28}", [sum(column) / len(vectors) for column in zip(*vectors, strict=True)])

# %% [markdown]
# The averages are equal, but the numbers are not. We need a network that reads an input of any
# length *in order*, and writes an output of *another* length.
#
# ## Read to the end, then write
# A **recurrent** network keeps a state, a vector of fixed size. It reads one word, updates the
# state, and reads the next. The state after the last word is the **encoding**. A second recurrent
# network, the **decoder**, starts from the encoding and writes letter after letter.
#
# ![Four words are read by a chain of encoder states h₁ to h₄. The last one becomes one vector of
# always 64 numbers. From it a chain of decoder states s₁ to s₄ writes z, w, e, i, and so
# on.](figures/bottleneck.svg)
#
# All that the decoder knows about the source must fit into the one vector in the middle. The
# groups of Sutskever and of Cho published this design in 2014.
#
# ### The data
# From here to lesson 14 we translate **numbers in words** from English to German, reading words and
# writing letters. There is as much data as we like, and an answer is right or wrong. One thing is
# hard: in German, 31 is *one-and-thirty*.

# %% demo=true
from attention.provided.data.numbers import numbers

corpus = numbers()
experiments.pairs_and_ids(corpus)

# %% [markdown]
# `PAD` (0) fills up short sequences. `EOS` (2) ends every sequence, and counts towards its length.
# `BOS` (1) tells the decoder to begin. About one number in ten is a **test number**, on which no
# lesson trains.
#
# ## A state that forgets on purpose
# A plain recurrent network overwrites its state at every step. A **gated recurrent unit** mixes the
# old state with a new candidate, and learns how much of each to take. For an input $x$ and a state
# $h$:
#
# $$\begin{aligned}
# r &= \sigma(W_{xr}\,x + b_{xr} + W_{hr}\,h + b_{hr}) && \text{reset: how much past to look at} \\
# z &= \sigma(W_{xz}\,x + b_{xz} + W_{hz}\,h + b_{hz}) && \text{update: how much past to keep} \\
# n &= \tanh\big(W_{xn}\,x + b_{xn} + r \odot (W_{hn}\,h + b_{hn})\big) && \text{candidate} \\
# h' &= (1 - z) \odot n + z \odot h && \text{mixture}
# \end{aligned}$$
#
# ($\sigma$ is the sigmoid, and $\odot$ multiplies two vectors number by number. This is PyTorch's
# variant: Cho and colleagues reset $h$ before the product with $W_{hn}$.)
#
# | quantity | shape | note |
# |---|---|---|
# | `x` | `(B, d_x)` | one input per sequence of the batch |
# | `h`, `r`, `z`, `n`, $h'$ | `(B, d)` | gates lie between 0 and 1 |
# | `W_x`, `b_x` | `(3d, d_x)`, `(3d,)` | three blocks, one below the other: r, z, n |
# | `W_h`, `b_h` | `(3d, d)`, `(3d,)` | the same |
#
# By hand, with a state of one number, 0.8, and the candidate −0.46. Let the input of the update
# gate's $\sigma$ be −4, 0 or 4:

# %%
state, candidate = 0.8, math.tanh(-0.5)
for seen in (-4.0, 0.0, 4.0):
    z = 1 / (1 + math.exp(-seen))  # the sigmoid
    mixed = (1 - z) * candidate + z * state
    print(f"input {seen:4.1f}   z {z:.2f}   new state {mixed:5.2f}")

# %% [markdown]
# With z near 0 the state is replaced, and with z near 1 it is kept.
#
# ### Exercise 2.1 · `gru_step`
# ●●○ medium · 12 minutes · 3 points
#
# Graded in three parts: the update gate (1), the reset gate (1), the biases (1).
#
# Write one step for a whole batch.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Two matrix products give everything that the three parts need: one of all weights with x, one
# with h. Cut each result into three pieces. Which of the three equations does *not* simply add its
# two pieces?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `(B, d_x)` times the transposed `(3d, d_x)` is `(B, 3d)`. `tensor.chunk(3, dim=1)` cuts it into
# three tensors `(B, d)`, in the order r, z, n.
# </details>
# <details><summary>Hint 3 · “RuntimeError: mat1 and mat2 shapes cannot be multiplied”</summary>
#
# The weights are stored as (outputs, inputs), as in `nn.Linear`. Transpose them with `.T`.
# </details>

# %% exercise="gru_step"
from attention.sequence_to_sequence import gru_step

# %% check="gru_step" points=3
check.gru_step(gru_step)

# %% [markdown]
# ### Predict first
# A state of 1.0 reads only zeros for 80 steps, and every candidate is 0. After how many steps is
# half of the state gone, if the update gate stands at 0.5? At 0.9? And at 0.99?

# %%
from attention.provided.predictions import compare

prediction = None  # steps until half is gone at z = 0.99; None skips this

# %% demo=true
steps = experiments.fading(gru_step)
compare(prediction, steps, "steps at z = 0.99")

# %% [markdown]
# *What is left of a state after up to 80 steps under three settings of the update gate.* While z is
# below 1, a gate can hold on for long, but not forever. The more it keeps, the less room is left
# for new inputs.
#
# `run_gru` takes these steps over a whole sequence. In a padded batch the GRU reads the padding,
# too, and the state of a short sequence goes on changing. So `encode` picks each sequence's state
# *after its last true token*.

# %% given="run_gru"
from attention.sequence_to_sequence import run_gru

# %% given="encode"
from attention.sequence_to_sequence import encode

# %% [markdown]
# ## Teaching the decoder
# At every step, the decoder gets the encoding and the letters so far, and predicts the next letter.
# In training it gets the *true* letters, whatever it would have written itself. With this **teacher
# forcing** all steps can be scored at once, and an early error does not spoil the rest.
#
# | step | 1 | 2 | 3 | 4 | 5 |
# |---|---|---|---|---|---|
# | reads | BOS | z | w | e | i |
# | should predict | z | w | e | i | EOS |
#
# So what the decoder reads is the target, moved one step to the right:

# %% given="shift_right"
from attention.sequence_to_sequence import shift_right

# %% [markdown]
# ### Exercise 2.2 · `masked_cross_entropy`
# ●●○ medium · 8 minutes · 2 points
#
# The loss of one step is $-\log p(\text{true letter})$. Average it over all *letters* of the batch,
# with EOS as one of them: neither over padding, nor sequence by sequence.
#
# $$\text{loss} = \frac{1}{N}\sum_{\text{target}_{bt} \ne \text{PAD}}
# -\log\,\text{softmax}(\text{logits}_{bt})_{\text{target}_{bt}}$$
#
# $N$ is the number of tokens that are not PAD. `F.cross_entropy` can do this; write it out. Logits
# may be of any size, and the loss stays finite.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Take the logarithms of all probabilities, pick those of the true letters, drop what stands at
# padding, and average the rest. `torch.log_softmax` takes softmax and logarithm in one step: a
# probability that was rounded to 0 would have the logarithm −∞.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Logits are `(B, T, vocab_size)`, and the softmax runs along the last axis. To pick one entry per
# position, `gather` along dim 2 with an index of shape `(B, T, 1)`: `target.unsqueeze(2)`. A
# boolean mask `(B, T)` then selects: which numbers does `losses[mask]` hold, and how many?
# </details>

# %% exercise="masked_cross_entropy"
from attention.sequence_to_sequence import masked_cross_entropy

# %% check="masked_cross_entropy" points=2
check.masked_cross_entropy(masked_cross_entropy)

# %% [markdown]
# ### Exercise 2.3 · `break_masked_cross_entropy` · Break this answer
# ●○○ easy · 5 minutes · 1 point
#
# A classmate takes the mean of each sequence, without its padding, and then the mean of these
# means. On some batches this is the same number. Find logits and targets for which it is not.
#
# <details><summary>Hint 1 · the idea</summary>
#
# How much does one token of a long sequence count in each of the two? With one short and one long
# sequence, when does it make no difference after all?
# </details>

# %% broken="averages_each_sequence_first"
from autograder.mistakes.sequence_to_sequence import averages_each_sequence_first

# %% exercise="break_masked_cross_entropy"
from attention.sequence_to_sequence import break_masked_cross_entropy

# %% check="break_masked_cross_entropy" points=1
check.break_masked_cross_entropy(break_masked_cross_entropy)

# %% [markdown]
# ## Writing without a teacher
# When the decoder translates, nobody tells it the true letters: it reads what it wrote itself. One
# step is given. Besides the last letter it reads the **context**, all that it knows of the source:
# in this lesson the encoding, the same at every step.

# %%
from attention.provided import demand  # refuses sizes that make no sense

# %% given="decoder_step"
from attention.sequence_to_sequence import decoder_step

# %% [markdown]
# ### Exercise 2.4 · `greedy_decode`
# ●●● hard · 15 minutes · 3 points
#
# Graded in three parts: rows that end together (1), rows that end one by one (1), the number of
# steps (1).
#
# Write the loop: start with BOS (given), take the most probable letter at every step, and read it
# at the next. A row that has written EOS gets PAD from then on. Stop when all rows have ended, or
# after `max_length` steps. "Greedy" means that a letter, once written, is never reconsidered.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Three things change from step to step: the tokens just written, the state, and which rows have
# ended. Write it for one sequence on paper first.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Logits `(B, vocab_size)`, tokens and `ended` `(B,)`. The list of n tensors `(B,)` becomes `(B, n)`
# with `torch.stack(…, dim=1)`.
# </details>
# <details><summary>Hint 3 · the batch is written differently from each sequence alone</summary>
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
# `nn.Embedding` is a table with one learned vector for each id. `nn.GRU` does what `run_gru` does,
# in compiled code. `forward` scores the true letters by teacher forcing; it shifts the target
# itself. (`reverse_source` belongs to the starred part.)

# %% given="Seq2Seq"
from attention.sequence_to_sequence import Seq2Seq

# %% [markdown]
# ## Training is a loop
# The model begins with random weights. Training shows it batch after batch, and after each one
# moves every weight a little against the gradient of the loss. Four methods are enough:
#
# | method | of | what it does |
# |---|---|---|
# | `backward()` | the loss | computes gradients, and **adds** each to its parameter's `.grad` |
# | `step()` | the optimiser | moves each parameter against its `.grad` |
# | `zero_grad()` | the optimiser | empties the `.grad` of each parameter |
# | `item()` | the loss | gives a Python float; the tensor keeps all that its batch computed |
#
# ### Exercise 2.5 · `train`
# ●●○ medium · 12 minutes · 3 points
#
# Graded in two parts: the losses (1), the steps (2).
#
# Write the loop: for each batch let the model score the target, compute `masked_cross_entropy`, and
# take one step against its gradient alone. Return the losses.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Score, loss, gradient, step: each needs what the one before has made. Where must the gradients be
# emptied, so that each step follows those of its own batch?
# </details>
# <details><summary>Hint 2 · what goes where</summary>
#
# The model takes a batch's source, lengths and target, in this order, and gives logits `(B, T,
# vocab_size)`. It has shifted the target already, so they belong to `batch.target` as it is.
# </details>
# <details><summary>Hint 3 · “from the third time on the loss … is wrong”</summary>
#
# The first step is right, and later ones go too far: they follow the gradients of earlier batches
# as well.
# </details>

# %% exercise="train"
from attention.sequence_to_sequence import train

# %% check="train" points=3
check.train(train)

# %% [markdown]
# Now train your translator with your loop: 300 batches of 64 pairs, in a few seconds.

# %% demo=true
from attention.provided.models import translators

torch.set_num_threads(1)  # as fast for small matrices, and much faster beside other programs
torch.manual_seed(0)
model = Seq2Seq(len(corpus.source_vocabulary), len(corpus.target_vocabulary))
optimizer = translators.adam(model, steps=300)
losses = train(model, corpus.batches(64, steps=300, seed=0), optimizer)

# %% [markdown]
# **From here on the loop stays the same**, whatever the model. The later lessons call it
# ready-made, and lesson 10 writes it out once more. The optimiser here is Adam, with two customary
# additions that lesson 11 explains:
#
# <details><summary>The code of <code>translators.adam</code></summary>
#
# ```python
# optimizer = torch.optim.Adam(model.parameters(), lr=0.006)
# # The rate rises for a tenth of the steps, and then falls to 0.
# schedule = torch.optim.lr_scheduler.LambdaLR(
#     optimizer, lambda step: min((step + 1) / (0.1 * steps), (steps - step) / (0.9 * steps))
# )
#
# def shorten(*_):  # gradients that are longer than 1
#     nn.utils.clip_grad_norm_(model.parameters(), 1.0)
#
# optimizer.register_step_pre_hook(shorten)
# optimizer.register_step_post_hook(lambda *_: schedule.step())
# ```
# </details>
#
# The German side has 24 different tokens. If all were equally probable, the loss would be log 24 ≈
# 3.18.

# %% demo=true
ax = experiments.losses_of(losses, corpus)

# %% [markdown]
# *Loss, in nats (natural logarithms) per letter, against steps: from about log 24 it falls to about
# 0.12.* Here are translations of numbers that the model has never seen:

# %% demo=true
experiments.translations(model, corpus)

# %% [markdown]
# Up to four digits these are right, except for 0, a test number: the word "zero" never came up in
# training. The long ones begin well and go astray. The model can spell in German, but does not
# remember a long source.
#
# ## The bottleneck, measured
# What share of the test numbers of each length is translated without any error
# (`accuracy_by_digits`)? And what share of the letters is right if the true ones before are given?

# %% demo=true
for digits, share in translators.accuracy_by_digits(model, corpus).items():
    batch = corpus.batch(corpus.test_by_digits(at_most=100)[digits])
    best, real = model(**vars(batch)).argmax(dim=2), batch.target != PAD  # by teacher forcing
    right = (best == batch.target)[real].float().mean()
    each = f"{digits} digits, {len(real)} numbers of {real.sum() / len(real):.1f} letters"
    print(f"{each}; right: {right:.3f} of the letters, {share:.2f} of the numbers")

# %% [markdown]
# Nearly all numbers of two and three digits are right, and hardly any of five and six. The source
# grows, but the vector does not: this is the **fixed-length bottleneck**. Its cliff is steep
# because one wrong letter spoils a number. Of the letters of six-digit numbers 93.5 % are right,
# but 52 must be right in a row: were errors independent, that would be 0.935 to the power of 52, or
# 3 %. (Here and in later lessons, the shares at two digits are of 14 numbers. Every length is
# equally frequent in training, so each of the short numbers comes up many times.)
#
# Is the *size* of the vector to blame? A wider translator has a longer vector, but also a stronger
# encoder and decoder. So take them apart: train GRUs of 64 and of 128 numbers, and let the decoder
# see only the first 16, 32 or 64 numbers of the encoding, the others being 0. Then change only the
# number of steps.
#
# <details><summary>How each of these was trained and measured</summary>
#
# ```python
# torch.manual_seed(seed)
# model = Seq2Seq(len(corpus.source_vocabulary), len(corpus.target_vocabulary), d_state=d_state)
# encoding, kept = model.encoding, torch.arange(d_state) < through
# model.encoding = lambda source, lengths: encoding(source, lengths) * kept
# train(model, corpus.batches(64, steps, seed), translators.adam(model, steps))
# translators.accuracy_by_digits(model, corpus)
# ```
#
# `experiments.train_one(128, 300, 0, Seq2Seq, through=32)` runs one of them again: GRUs of 128
# numbers, 300 steps, seed 0.
# </details>
#
# ### Predict first
# With 64 numbers and 300 steps, hardly any five-digit number was right. What share is right with
# the same 64 numbers and 1000 steps, in the median of three seeds?

# %%
prediction = None  # a number from 0 to 1; None skips this

# %% demo=true
share = experiments.vector_network_and_steps(Seq2Seq, corpus)
compare(prediction, share, "five digits, 64 numbers, 1000 steps")

# %% [markdown]
# *Share translated without error. Left, at four digits: how many numbers of the encoding the
# decoder sees, of 128 or of 64; a dot for each of three seeds. Right: 300 and 1000 steps with 64
# numbers, the median of three seeds and the band from the worst to the best.* Both the vector, cut
# like this, and the network count. Each halving of the vector costs accuracy, and so does halving
# the GRUs while the vector stays: every run is worse than every run with twice as much. So 64
# numbers from GRUs of 128 do far better than 64 from GRUs of 64. With more training 64 numbers do
# hold five digits: after 1000 steps each run gets at least 0.43 right, and after 3000 steps our one
# run gets all of them right.
#
# ## A long way
# ![A chain of seven states. What the first word says reaches the last word only after six steps,
# each of which waits for the one before.](figures/interaction_distance.svg)
#
# To travel from one word to another, information needs one step for every place between them. This
# is the **linear interaction distance** of recurrent networks. Does a word fade on the way? The
# gradient says how strongly the encoding changes with each word of a source.
#
# <details><summary>How this is measured</summary>
#
# ```python
# x = model.source_embedding(batch.source)  # (B, T, d_embedding)
# states, _ = model.encoder(x)
# last = encode(states, batch.lengths)  # (B, d_state)
# # The encoding has many numbers, and a gradient wants one: weigh them at random.
# (gradient,) = torch.autograd.grad((last * torch.randn(last.shape)).sum(), x)
# influence = gradient.norm(dim=2).mean(dim=0)  # (T,), then divided by that of EOS
# ```
# </details>
#
# ### Predict first
# The longest sources have nine words, and EOS. How much does their first word count after training,
# if EOS, the last, counts as 1?

# %%
prediction = None  # a number, 1 if as much as EOS; None skips this

# %% demo=true
compare(prediction, experiments.reach(), "first word, after training, seed 0")

# %% [markdown]
# *Influence of each word on the encoding against the steps since it was read, EOS being 1, on the
# test numbers of nine words; vertical scale logarithmic, a line for each of three seeds.* Before
# training, the first word counts less than a hundredth of EOS. After 300 steps nothing fades: the
# first word counts about as much as EOS. So over nine words the distance can be bridged, and fading
# is not what makes long numbers fail here.
#
# ## And a slow one
# State t needs state t − 1, so the steps must be taken one after the other, however many processors
# there are. Compare `nn.GRU(64, 64)` with a layer that treats all positions alike and needs as many
# multiplications, `nn.Linear(64, 6 * 64)`:

# %% demo=true
ax = experiments.times()

# %% [markdown]
# *Time against sequence length for a GRU and for a linear layer with as many multiplications, on
# one core: for one sequence, and for a batch of 64.* One sequence at a time the GRU takes many
# times as long: its matrix products are small. In a batch of 64 they are large, and most of the gap
# closes. But its steps still wait for one another, so many processors would sit idle. This **lack
# of parallelism** is why the Transformer of lesson 10 does without recurrence.
#
# ## What if the padding is read?
# Let `encode` take the state at the *padded* end. Translate three test numbers of two digits in
# batches with longer and longer companions, first with this mistake, then without it.


# %% demo=true
def encode_at_the_padded_end(states, lengths):
    return states[:, -1]


few, right_encode = [pair for pair in corpus.test if 20 < pair[0] < 100][:3], encode

# %% demo=true
for one in (encode_at_the_padded_end, right_encode):
    encode = one
    for digits in (2, 4, 6):
        batch = few + corpus.test_by_digits(at_most=1)[digits]
        texts = translators.translations(model, corpus, batch)[:3]
        print(f"{one.__name__}, beside {digits} digits:", *(text[:20] or "–" for text in texts))

# %% [markdown]
# With the mistake, the translations of the same three numbers depend on what else is in the batch.
# No error message tells you so.
#
# ## What this translator cannot do
# One vector of fixed size serves sources of any length. What does not fit, or what the model did
# not learn to keep, is lost before the first letter is written. Nothing says which word a letter
# came from. The steps cannot run in parallel. And numbers are an easy language, with a few dozen
# words and no ambiguity.
#
# ## Something of your own
# Interrogate your translator: `translators.translations(model, corpus, [(0, text, "")])` gives its
# German for any `text` of English number words. Change a word, repeat one, or give words in an
# order that no number has ("hundred three thousand two"). Show the most telling translations in a
# small table, with one sentence on what they say about its memory.

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# An encoder reads a sequence of any length into one vector, and a decoder writes from it. In
# training, the decoder reads the true letters. After 300 steps accuracy falls steeply with the
# length of the source; a longer vector, a wider network and longer training each postpone this drop
# to longer numbers. A recurrent network takes one step per word, and the computer waits that long.
#
# **Next** [03 · What if the decoder could look
# back?](../03_bahdanau_attention/03_bahdanau_attention.ipynb) The same data, the same steps, and a
# context of its own for every letter.
#
# ## Open questions
# 1. How exactly must the decoder know the 64 numbers? Round the encoding to multiples of 0.1, 0.25
#    or 0.5 before decoding (rebind `encode`, as above), and measure the accuracy by
#    length.
# 2. The loss is about 0.12 nats per letter. Is exp(−0.12) = 0.89 what a true letter's probability
#    typically is?

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. Not very exactly, in this model. As it is, 0.98 of the three-digit and 0.43 of the four-digit
#    numbers are right; with multiples of 0.1 it is 0.97 and 0.44, of 0.25 0.96 and 0.42, of 0.5
#    (five possible values for each number) 0.95 and 0.36. Precision is not what the vector lacks.
# 2. No, it is their geometric mean. On the test numbers half of the letters have more than 0.99,
#    and 6 % less than 0.5.
#
# </details>

# %% [markdown]
# ## ★ Read it backwards
# Sutskever and colleagues read the source *backwards*: then the encoder reads last what the decoder
# writes first. Their error fell. They could not fully explain why, but believed that learning is
# easier when the first words of source and translation are only a few steps apart.
#
# ### Exercise 2.6 · `reverse_source` ★
# ●●○ medium · 8 minutes · 2 points
#
# Reverse each sequence within its true length, and leave the padding after it. The function should
# work for vectors as well as for ids.
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
# <details><summary>Hint 3 · “the values are right, but the function changes its inputs”</summary>
#
# Writing into a row of the source changes the caller's tensor. `clone()` makes a copy.
# </details>

# %% exercise="reverse_source"
from attention.sequence_to_sequence import reverse_source

# %% check="reverse_source" points=2
check.reverse_source(reverse_source)

# %% demo=true
ax = experiments.reversed_source()

# %% [markdown]
# *Share translated without error against digits, with the source as it is and reversed, all else
# equal: the median of three seeds, and the band from the worst to the best.* At four digits every
# run with the reversed source is better than every run without. The experiment shows *that*
# reversing helps here, not why. (`experiments.train_one(64, 300, 3, Seq2Seq, reverse=True)` trains
# another one, by the loop of the other measurements.)
#
# ## References
# - I. Sutskever, O. Vinyals, Q. V. Le (2014). *Sequence to sequence learning with neural networks.*
#   [arXiv:1409.3215](https://arxiv.org/abs/1409.3215)
# - K. Cho et al. (2014). *Learning phrase representations using RNN encoder–decoder for statistical
#   machine translation.* [arXiv:1406.1078](https://arxiv.org/abs/1406.1078)
# - K. Cho, B. van Merriënboer, D. Bahdanau, Y. Bengio (2014). *On the properties of neural machine
#   translation: encoder–decoder approaches.* [arXiv:1409.1259](https://arxiv.org/abs/1409.1259)
