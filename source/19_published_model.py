# %% [markdown]
# # 19 · Can you run a published model?
#
# So far every model was trained in this course. Others publish theirs: a file of weights, and a
# description of the layers that the weights belong to. In this lesson you take a well-known model
# that turns sentences into vectors, **all-MiniLM-L6-v2**, and run it in layers that you wrote.
#
# **After this lesson** you can
# - cut words into **word pieces**, as BERT does,
# - run published weights in your own layers, and show that the numbers are the published ones,
# - say how vectors for sentences are learned from pairs of texts (**contrastive loss**),
# - search texts by **meaning**, and measure it against a search by words,
# - say what such vectors cannot tell apart,
# - ★ say what three experiments of Brunner et al. (2020) show on a model of the kind that they
#   studied.
#
# **Time** 110 minutes, ★ 10 more · **Points** 14 · **GPU** not needed · **You need** lessons 07,
# 08, 09 and 16; 17 for ★

# %%
import math

import torch
from torch.nn import functional as F

from attention.experiments import published_model as experiments
from autograder import check

torch.set_num_threads(1)  # the small model is faster on one core

# %% [markdown]
# ## Which sentences belong together?
# Here are eight sentences, two on each of four subjects. A search that counts shared words cannot
# tell which ones belong together: no two share more than one small word, such as *is*.

# %% demo=true
_ = experiments.show_similar()

# %% [markdown]
# *Cosines of all pairs of sentences, by all-MiniLM-L6-v2. The columns are numbered like the rows,
# and an orange cell is a large cosine.* The two sentences on one subject have cosines of 0.40 to
# 0.56; all others are at most 0.16. The model finds the partner of every sentence.
#
# ## What is different in a BERT?
# With the same weights and the same formulas you get the same numbers, but for rounding, however
# the code is written. All-MiniLM-L6-v2 is a **BERT** (Devlin et al., 2019): an encoder, as in
# lesson 16, made of the layers of lesson 09. Seven things differ:
#
# | what | your models so far | BERT |
# |---|---|---|
# | between the linear layers | ReLU | GELU |
# | eps of a LayerNorm | 1e-5 | 1e-12 |
# | positions | sines, or learned | learned; and a third table, for types of sentences |
# | tokens | words, bytes or BPE | word pieces |
# | a token's vector | multiplied by √d_model | as it is in the table |
# | after the embeddings | nothing | a LayerNorm |
# | order in a layer | mostly pre-norm, then a norm at the end | post-norm |
#
# You will meet two models of this kind:
#
# | model | layers | `d_model` | heads | `d_ff` | pieces | parameters |
# |---|---|---|---|---|---|---|
# | all-MiniLM-L6-v2 | 6 | 384 | 12 | 1 536 | 30 522 | 22.6 million |
# | the stand-in | 3 | 48 | 4 | 96 | 1 600 | 0.14 million |
#
# The published file has 91 megabytes and is not part of the course: `autograder data fetch minilm`
# downloads it. Without it you see what was recorded, and your layers run the **stand-in**, a small
# model that this course trained; so fetch it if you can. Both learned from pairs of texts that
# belong together, such as a question and its answer: within a batch, the two vectors of a pair
# should be nearer to each other than to those of the other pairs. The published model began as
# every second layer of MiniLM, a model that had learned to imitate the attention of a larger one
# (Wang et al., 2020). Then it was trained on over a billion pairs. The stand-in saw 5 192
# docstrings with their first lines.
#
# ## Which curve lies between the layers?
# If one formula differs from the published one, no error says so. Begin with the smallest: the
# curve between the two linear layers.
#
# ### Exercise 19.1 · `gelu`
# ●○○ easy · 5 minutes · 1 point
#
# Where your networks had a ReLU, BERT has a **GELU**. A ReLU keeps a number or drops it. A GELU
# keeps a share of it: the share Φ(x) of a normal distribution, with mean 0 and variance 1, that
# lies below x.
#
# $$\mathrm{gelu}(x) = x\,\Phi(x) \qquad
# \Phi(x) = \tfrac{1}{2}\left(1 + \mathrm{erf}\!\left(x / \sqrt{2}\right)\right)$$
#
# Write it for a tensor of any shape. `torch.erf` is the function erf. Take this formula, and not
# the approximation by a tanh that some other models use: the weights were trained with this one.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Everything happens number by number, whatever the shape. `math.sqrt(2)` is a plain number.
# </details>

# %% exercise="gelu"
from attention.published_model import gelu

# %% check="gelu" points=1
check.gelu(gelu)

# %% demo=true
experiments.draw_gelu(gelu)

# %% [markdown]
# *Your GELU beside ReLU, both axes on one scale.* `F.gelu` is the same in one call. The form with a
# tanh was faster to compute; below you see whether it matters.
#
# ## Words that are not in the vocabulary
# The word *unbelievably* is not among BERT's 30 522 pieces, and yet BERT can read it: as several
# pieces. A piece that begins with `##` continues a word; all other pieces begin one.
#
# ### Exercise 19.2 · `wordpiece`
# ●●○ medium · 15 minutes · 2 points
#
# Cut a word from left to right, and take **the longest piece that fits** each time. At the start of
# the word, a piece fits if it is in the vocabulary and the word begins with it. Later on, a piece
# fits if it is in the vocabulary with `##` in front and the rest of the word begins with it. A
# piece once taken is kept. If nothing fits the rest, the whole word becomes `["[UNK]"]`, unknown.
# Capital and small letters are different letters.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Keep `start`, the place where the next piece begins. Try the ends from the last one down:
# `len(word)`, `len(word) - 1`, … `start + 1`. The first hit is the longest piece.
# </details>
# <details><summary>Hint 2 · pseudocode</summary>
#
# ```
# while there is something left of the word:
#     for each end, the last one first:
#         if the piece from start to end is known (with ## unless start is 0): stop looking
#     if there was none: return [UNK]
#     keep the piece, and go on where it ended
# ```
# </details>
# <details><summary>Hint 3 · how to notice that nothing fits</summary>
#
# A `for` loop can have an `else`: it runs if the loop was not left by `break`.
# </details>

# %% exercise="wordpiece"
from attention.published_model import wordpiece

# %% check="wordpiece" points=2
check.wordpiece(wordpiece)

# %% demo=true
experiments.show_pieces(wordpiece)

# %% [markdown]
# *The same texts with the stand-in's 1 600 pieces, by your function, and with BERT's 30 522, as
# recorded. Blue begins a word, orange continues it.* Before words are cut, a text is put into lower
# case, loses its accents, and is split at spaces and punctuation marks; this part is given. The
# larger vocabulary leaves more words whole. The smaller one does not have every sign: its `[UNK]`
# is the dash. Two more pieces, not drawn here, stand around every text: `[CLS]` before, `[SEP]`
# after it.
#
# ### Exercise 19.3 · `break_wordpiece` · Break this answer
# ●●○ medium · 7 minutes · 1 point
#
# This answer is cleverer than it should be: where the longest piece leads nowhere, it goes back and
# tries a shorter one. The published model never saw such cuts in its training. Find a word and a
# vocabulary for which this answer and `wordpiece` differ.
#
# <details><summary>Hint 1 · where to look</summary>
#
# Which word does `wordpiece` call unknown though it could be cut? Your vocabulary needs two pieces
# with which the word can begin.
# </details>
# <details><summary>Hint 2 · a smaller question</summary>
#
# Three pieces are enough: two that begin the word, one longer than the other, and one that
# continues it. After which beginning should the third one fit?
# </details>

# %% broken="tries_every_cut"
from autograder.mistakes.published_model import tries_every_cut

# %% exercise="break_wordpiece"
from attention.published_model import break_wordpiece

# %% check="break_wordpiece" points=1
check.break_wordpiece(break_wordpiece)

# %% [markdown]
# ## Where do the weights belong?
# The file holds 22.7 million numbers, with a layer that we leave out, and not a line of code. Which
# layers do they belong to? First come the embeddings. For each token, rows of three tables are
# added: one for its id, one for its place in the text, and one for its **type**. In training BERT
# read two sentences at a time, and the type said which of the two a token belonged to. We only ever
# read one, so all tokens are of type 0. The sum goes through a LayerNorm.

# %%
from torch import nn

from attention.provided import demand  # refuses numbers that make no sense

# %% given="BertEmbeddings"
from attention.published_model import BertEmbeddings

# %% [markdown]
# ### Exercise 19.4 · `BertLayers`
# ●●○ medium · 13 minutes · 3 points
#
# Graded in three parts: the layers (1), every layer's output (1), with padding (1).
#
# A layer of a BERT is the `EncoderLayer` of lesson 09, post-norm, with what `bert_layer` changes:

# %%
from attention.transformer_blocks import EncoderLayer

# %% given="bert_layer"
from attention.published_model import bert_layer

# %% [markdown]
# (`nn.GELU` is your `gelu` as a module.) Now stack `n_layers` of them: each layer has weights of
# its own and reads what the layer before it gives. With `return_layers=True` return all
# intermediate results, stacked in one tensor: `x` itself, then what each layer gives.
#
# The mask, (B, T), says which tokens are real, one row per text. No token may look at padding, in
# any layer. A token of the padding may look at the real ones, like any other. A layer takes a mask
# that broadcasts to (B, T_q, T_k); `mask=None` means that all tokens are real.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A loop over `self.layers` in which `x` is replaced again and again. For `return_layers` collect
# the tensors in a list, and join them with `torch.stack`.
# </details>
# <details><summary>Hint 2 · the mask</summary>
#
# The mask says which keys may be seen, and it is the same for every query. Where do the queries
# stand in (B, T_q, T_k)? An axis of length 1 belongs there.
# </details>

# %% exercise="BertLayers"
from attention.published_model import BertLayers

# %% check="BertLayers" points=3
check.BertLayers(BertLayers)

# %% [markdown]
# A whole BERT consists of these embeddings and your layers, with your `gelu` in them:

# %% given="Activation"
from attention.published_model import Activation

# %%
from attention.provided.data.tokens import PAD

# %% given="PublishedEncoder"
from attention.published_model import PublishedEncoder

# %% [markdown]
# ### Exercise 19.5 · `rename_weights`
# ●●○ medium · 12 minutes · 2 points
#
# Graded in two parts: the names (1), the refusal (1).
#
# All weights are there, but under other names. In the published file, a weight of layer 3 is called
# `encoder.layer.3.attention.self.query.weight`. In your model it is
# `encoder.layers.3.attention.W_q.weight`. `NAMES` says what each part of a name becomes:

# %%
NAMES = {
    "embeddings.word_embeddings": "embeddings.words",
    "embeddings.position_embeddings": "embeddings.positions",
    "embeddings.token_type_embeddings": "embeddings.types",
    "embeddings.LayerNorm": "embeddings.norm",
    "encoder.layer": "encoder.layers",
    "attention.self.query": "attention.W_q",
    "attention.self.key": "attention.W_k",
    "attention.self.value": "attention.W_v",
    "attention.output.dense": "attention.W_o",
    "attention.output.LayerNorm": "norm_1",
    "intermediate.dense": "feed_forward.linear_1",
    "output.dense": "feed_forward.linear_2",
    "output.LayerNorm": "norm_2",
}
UNUSED = ("embeddings.position_ids", "pooler.")  # a list 0, 1, 2 …; a layer for another task

# %% [markdown]
# Give every weight of the file its new name. Each part that stands in `NAMES` is replaced, in the
# order of the table, and the rest of the name stays as it is. Leave out every name that begins with
# one of `UNUSED`.
#
# Then compare with `wanted`, the `state_dict()` of your own model: the new names and the names in
# `wanted` must be the same. A weight that has no place in the model, or a place for which the file
# has no weight, raises a ValueError in which that name stands. A model that quietly kept a random
# weight would run, and be wrong.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A name can hold several parts, so go through all of `NAMES` for each name of the file, and keep
# what `str.replace` makes of it. `name.startswith(UNUSED)` takes a whole tuple.
# </details>
# <details><summary>Hint 2 · why the order matters</summary>
#
# `output.dense` also stands in `attention.output.dense`. What would become of a weight of W_o if
# the shorter name were replaced first?
# </details>

# %% exercise="rename_weights"
from attention.published_model import rename_weights

# %% check="rename_weights" points=2
check.rename_weights(rename_weights)

# %% [markdown]
# ## Are these the published numbers?
# The library **transformers** has its own code for a BERT. It read the eight sentences of the
# beginning, and the first 16 numbers of every vector were stored, after each layer. Do yours agree?

# %% demo=true
experiments.compare_layers(PublishedEncoder, rename_weights, wordpiece)

# %% [markdown]
# *The largest difference over all layers and real tokens, in the first 16 numbers of each vector.*
# float32 has about seven digits, so these differences are rounding. Your layers *are* a BERT.
#
# In a clone of the course, `make glass` writes [a page](../../book/_build/html/glass.html#bert)
# that shows the stand-in at work: type a sentence, and see its word pieces, every weight of every
# head with its arithmetic, and which of eight other sentences is nearest.
#
# ## How near are two sentences?
# Your layers give a vector for each token. To compare two sentences, you need one for each of them,
# and the **cosine** of the angle between the two: their dot product, divided by both lengths.

# %%
query = (3.0, 4.0)
for passage in ((8.0, 6.0), (0.0, 2.0)):
    product = sum(q * p for q, p in zip(query, passage, strict=True))
    print(round(product / (math.hypot(*query) * math.hypot(*passage)), 2))

# %% [markdown]
# The first passage is longer than the query, but nearly parallel to it: only the direction counts.
#
# ### Exercise 19.6 · `sentence_vectors`
# ●○○ easy · 5 minutes · 1 point
#
# Turn each text into one vector: the mean of its real tokens, divided by its own length, so that
# every vector has length 1. Then the dot product of two is their cosine. A text without a real
# token gets zeros.
#
# <details><summary>Hint 1 · the functions</summary>
#
# `mean_pooling` of lesson 16 takes care of the padding. `F.normalize` divides vectors by their
# length, and leaves zeros as they are. Along which axis do the numbers of one vector lie?
# </details>

# %%
from attention.encoders_and_vision import mean_pooling

# %% exercise="sentence_vectors"
from attention.published_model import sentence_vectors

# %% check="sentence_vectors" points=1
check.sentence_vectors(sentence_vectors)

# %% [markdown]
# Now the eight sentences of the beginning, with your own pieces:

# %% demo=true
_ = experiments.show_similar(PublishedEncoder, rename_weights, wordpiece, sentence_vectors)

# %% [markdown]
# *Cosines of all pairs, in your layers: the stand-in, and the published model, which is drawn as
# recorded if you have not fetched it.* The stand-in, which has read nothing but docstrings, finds
# only the pair on the railway. The published model finds all four.
#
# ## Which details matter?
# Had you got one of the seven differences wrong, or forgotten the padding, would you have noticed
# it in the results? Two measures: the mean cosine between a text's correct vector and the broken
# one says how far vectors turned. And 589 docstrings of Python libraries are to be found: the first
# line is the query, the rest the passage. The published model puts the right passage first for 0.57
# of them.
#
# ### Predict first
# Break the published model in one place at a time:
# - LayerNorm's eps is 1e-5 instead of 1e-12,
# - GELU is the form with a tanh, or ReLU takes its place,
# - the rows of all positions are zeros,
# - the text keeps its capitals, which the vocabulary lacks,
# - the rows of the pieces are multiplied by √d_model,
# - the LayerNorm after the embeddings is left out,
# - the layers are pre-norm,
# - attention is not told what is padding.
#
# After two of these changes, less than a tenth of the docstrings are found first. Which? And how
# large is the mean cosine if attention sees the padding?

# %%
prediction = None  # a cosine, from -1 to 1; None skips this

# %% demo=true
from attention.provided.predictions import compare

seen = experiments.show_broken()
compare(prediction, seen, "padding is seen: cosine with the correct vectors")

# %% [markdown]
# *Cosines with the correct vectors, over 1 178 texts, in batches of 32. Last column: the share of
# docstrings found first.* Another eps and the tanh form change nothing that shows here. Where
# attention sees the padding, the mean cosine is still 0.91, yet the share found first falls from
# 0.57 to 0.46. With ReLU the mean cosine is 0.52, but 0.46 are still found: a vector may turn far
# and still lie nearest to the right passage. With pre-norm, or without the LayerNorm after the
# embeddings, 0.08 are found at most: these two you would notice. The other five you would take for
# a somewhat weaker model. That is why you compared layer by layer.
#
# ## How are such vectors learned?
# No data set says what the vector of a text should be. All we know is which texts belong together:
# a question and its answer, or the first line of a docstring and the rest of it. So a batch of B
# pairs becomes B questions with B choices each: for text i of the first side, which text of the
# second side is its partner? The other B − 1 texts are the wrong answers, **in-batch negatives**,
# and cost nothing extra. This is a **contrastive loss**.
#
# ### Exercise 19.7 · `contrastive_loss`
# ●●○ medium · 12 minutes · 2 points
#
# Row i of `first` and row i of `second` are the vectors of a pair. They may have any length: the
# score of two texts is their **cosine, divided by the temperature**. Text i of `first` chooses
# among all texts of `second` by a softmax over its scores; its loss is minus the logarithm of the
# probability of its own partner. Return the mean of these losses over the batch.
#
# Cosines lie between −1 and 1, so a softmax over many of them is nearly flat: a cosine of 1 beside
# 63 zeros gets a probability of only 0.04. A temperature of 0.05 makes the 1 a 20, and its
# probability nearly 1.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Bring all vectors to length 1. Then one matrix product gives the cosines of all pairs, (B, B).
# What stands on its diagonal?
# </details>
# <details><summary>Hint 2 · a classification</summary>
#
# Row i of the scores holds logits over B classes, and class i is right. Which function of PyTorch
# takes logits and the numbers of the right classes?
# </details>

# %% exercise="contrastive_loss"
from attention.published_model import contrastive_loss

# %% check="contrastive_loss" points=2
check.contrastive_loss(contrastive_loss)

# %% [markdown]
# Does your loss teach anything? Take the architecture of the stand-in, untrained. In each of 40
# steps it reads 64 docstrings, the first lines on one side and the bodies on the other. Before and
# after, it searches the 589 held-out docstrings by their first lines. The control learns from the
# same batches with their bodies **shuffled**: the texts are the same, but not the partners.
#
# <details><summary>The code that ran</summary>
#
# ```python
# rows = draw.sample(docstrings.split(docstrings.load())[0], STEPS * BATCH)
# optimizer = torch.optim.AdamW(bert.model.parameters(), lr=4e-3)
# for start in range(0, len(rows), BATCH):
#     summaries = [row.summary for row in rows[start : start + BATCH]]
#     bodies = [row.body for row in rows[start : start + BATCH]]
#     if partners == "shuffled":
#         draw.shuffle(bodies)
#     pair = []
#     for texts in (summaries, bodies):
#         ids = bert.tokenizer.batch(texts, 32)  # (BATCH, up to 32)
#         pair.append(sentence_vectors(bert.model(ids), ids != PAD))
#     loss = contrastive_loss(*pair, temperature=0.05)
#     optimizer.zero_grad()
#     loss.backward()
#     optimizer.step()
#     losses.append(loss.item())
# ```
# </details>
#
# ### Predict first
# Untrained, it finds 0.02 to 0.07 of the docstrings first. What share does it find after 40 steps?

# %%
prediction = None  # a share, from 0 to 1; None skips this

# %% demo=true
lesson = PublishedEncoder, rename_weights, wordpiece, sentence_vectors, contrastive_loss
compare(prediction, experiments.show_contrast(*lesson), "found first after 40 steps")

# %% [markdown]
# With the right partners the loss falls from 4.0 to between 2.5 and 2.7, and 0.18 to 0.20 of the
# docstrings are found first. With shuffled partners it ends at 4.16, the logarithm of 64: the model
# does no better than guessing among 64 texts, and finds at most 0.02. So what is learned comes from
# the pairs, not from the texts alone. The stand-in that ships learned for 1 500 steps from batches
# of 128, with the mean of the losses in both directions.
#
# ## Search by meaning
# *Turn a string into a date*: the word *date* stands in none of the 589 held-out docstrings, and
# yet one of them may be what you need.
#
# ### Exercise 19.8 · `search`
# ●●○ medium · 16 minutes · 2 points
#
# Find the `k` nearest passages for every query. All vectors have length 1, so the nearest passage
# is the one with the largest dot product: no distances are needed. For a thousand queries and a
# million passages, all scores together would take four gigabytes. So compare one block of passages
# after the other, and keep only the k best so far: their scores, and their rows in `passages`.
#
# The last block may be shorter than the others, and a block may have fewer than `k` passages. In
# the check no two passages have the same score.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Start with nothing found: scores of shape (Q, 0). For each block, put the best so far and the new
# scores side by side, and take the `k` largest with `topk`. Do the same with the rows.
# </details>
# <details><summary>Hint 2 · from columns to rows</summary>
#
# `topk` says in which *column* a score stands. The columns of a block that begins at `start` are
# the rows `start`, `start + 1`, …, and the first columns are those of the best so far. Keep a table
# of rows of the same shape as the scores, on the same device; `rows.gather(1, columns)` reads it.
# </details>
# <details><summary>Hint 3 · “selected index k out of range”</summary>
#
# `topk` wants at least k columns. How many can you take from the first block?
# </details>

# %% exercise="search"
from attention.published_model import search

# %% check="search" points=2
check.search(search)

# %% [markdown]
# The docstrings are from Python, numpy and PyTorch; the stand-in did not learn from them.

# %% demo=true
parts = PublishedEncoder, rename_weights, wordpiece, sentence_vectors, search
for question in ("Convert a string to a date.", "turn a string into a date"):
    experiments.ask(question, *parts)

# %% [markdown]
# *The first lines of the three nearest docstrings, with their cosines.* The first question has the
# form of a docstring, and both models find first what reads a time from a string. Asked in other
# words, the published model still finds it; none of the stand-in's three answers has to do with
# dates. But two questions prove little.
#
# ### Predict first
# The published model finds 0.57 of the 589 docstrings first. A search by shared words that weighs
# rare ones more (tf-idf) finds 0.48. And the stand-in, with 0.6 % of the parameters?

# %%
prediction = None  # a share, from 0 to 1; None skips this

# %% demo=true
first = experiments.draw_found()
compare(prediction, first, "found first by the stand-in")

# %% [markdown]
# *Share of the first lines whose docstring is found first, in the first table for all, with the
# same architectures untrained, three seeds, as controls; in the second table and the figure by the
# number of words that the two share, stop words such as “the” not counted.* “Shared words” counts
# these. The stand-in finds 0.45, fewer than tf-idf, although it learned from docstrings like these.
# Most first lines repeat words of what they look for, and that helps tf-idf most: from four shared
# words on, it finds 0.88. Where no word is shared, it finds 0.01, the stand-in 0.12, and the
# published model 0.18. (Some of these share a stem.) Untrained, the layers of the published model
# find 0.08 at most, those of the stand-in 0.07: it is the weights that search.
#
# ## What the vectors do not say
# Compare a sentence with one that says the same in other words, and with one that says something
# else in nearly the same words:
#
# | a sentence | the same | something else |
# |---|---|---|
# | I like this film. | This movie pleases me. | I do not like this film. |
# | The meeting begins at 9. | We meet at nine o'clock. | The meeting begins at 4. |
# | The dog bit the man. | The man was bitten by the dog. | The man bit the dog. |
#
# ### Predict first
# There are 18 such triples: on negation, on numbers, and on who did what. In how many of them is
# “something else” *nearer* to the sentence than “the same”?

# %%
prediction = None  # a number from 0 to 18; None skips this

# %% demo=true
nearer = experiments.draw_meaning()
compare(prediction, nearer, "triples in which something else is nearer")

# %% [markdown]
# *Cosines of the sentence on the left with those on the right: a blue dot for the same meaning, an
# orange diamond for the other one.* In 15 of the 18 triples, the sentence that means something else
# is nearer. Counting shared words goes wrong in 17: on these sentences, which were made to mislead,
# the model does little better. With the roles exchanged all six cosines are 0.98 to 0.99: on these
# sentences the vectors say what a sentence is about, and hardly what it claims. So read what a
# search has found.
#
# ## Limits
# - One vector has to do for a whole text. The makers of the published model trained it on texts of
#   at most 128 pieces, and cut texts at 256; longer texts are searched paragraph by paragraph.
# - The queries are first lines, and 506 of the 589 repeat a word of the docstring that they look
#   for. Questions that people ask may repeat fewer.
#
# ## Something of your own
# Write down ten questions about Python, and what should answer each. Then fetch the published model
# (`autograder data fetch minilm`), and ask it with `experiments.ask("…", *parts)`: how many are
# answered, and where would a search by words do better?
#
# In a clone of the course you can search your own notes. With `--mine` your functions do it:
#
# ```sh
# autograder collect
# python -m attention.search "what did we decide on dates?" NOTES --mine
# ```

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# Published weights are numbers with names: once your layers have places for all of them, they give
# the published results to the last digits of float32. The vectors find some texts that share no
# word with the query; where many words are shared, tf-idf finds more. And vectors of two sentences
# can be near even if a *not*, a number or the order of the words makes the meaning another one.
#
# **Next** [20 · What changed since 2017?](../20_modern_decoder/20_modern_decoder.ipynb) What
# changed in decoders, and what is each change good for?
#
# ## Open questions
# No points, no check.
# 1. Why does eps hardly matter here? When would it?
# 2. `[CLS]` and `[SEP]` count as real tokens in the mean. How would you find out whether they
#    should?

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. It is added to the variance of a vector. In the published model the least variance before a
#    LayerNorm, over the 589 docstrings, is 0.003: hundreds of times 1e-5. It would matter for
#    vectors that are almost constant. And in float16, 1e-12 is 0.
# 2. Leave them out of the mask, take the vectors of the 589 docstrings again, and count how many
#    are found first.
#
# </details>

# %% [markdown]
# ## ★ The experiments of Brunner et al. on a model of their kind
# Lesson 17 repeated their experiments on a small translator. Brunner et al. (2020) studied a BERT
# with 12 layers, trained to guess hidden words. Ours kept every second layer of a 12-layer model
# that imitated a larger one, and was trained further for sentence vectors. The control is the same
# model untrained. Everything is measured on three samples from *Persuasion*.
#
# ### Is it still that word?
# For each hidden vector, look for the nearest of the vectors that went in: is it at the same place?
#
# ### Predict first
# After the last layer, how large is the share of tokens whose nearest input, by distance, is their
# own?

# %%
prediction = None  # from 0 to 1; None skips this

# %% demo=true
from attention.experiments import hidden_tokens

own = hidden_tokens.draw_identifiability()
compare(prediction, own, "after the last layer, by distance")

# %% [markdown]
# *Share of tokens whose hidden vector is nearest to their own input, after each layer of the
# published model: by the cosine, by distance, and by the cosine after a linear map that was fitted
# on 800 other sentences. A line for each sample.* In the first three layers (0 to 2) nearly every
# vector is nearest to its own token. After the last layer the share is 0.53 to 0.56 by distance,
# 0.90 to 0.91 by the cosine, and 0.95 to 0.96 after a linear map: much of what moved away is not
# lost. Brunner et al., too, recovered more with a learned map. Untrained, all stay at 1, so here it
# is training that moves vectors away from their tokens; in lesson 17, with two layers, they stayed
# at 1 after training, too.
#
# ### Which part of the attention counts?
# The values of a head have `d_head` = 32 features. In a text of more than 32 pieces, a part of the
# weights makes no difference to what the head returns: it lies in the null space of the values. (In
# lesson 17 a change had to keep the sum, too, so T = 34 was the least.) **Effective attention**
# leaves out that part.

# %% demo=true
hidden_tokens.draw_effective()

# %% [markdown]
# *Left: the share of the squared weights that lies in the null space. Right: the mean weight on
# [CLS] in the published model. Both against the number of pieces; the vertical line is at d_head, a
# line for each sample.* Below 32 pieces raw and effective attention are the same, but for rounding,
# so only one of the two lines is seen. From 40 pieces on, 0.69 to 0.78 of the squared weights make
# no difference to what the heads return. The null space is as large without training, but holds
# 0.03 of them at most. There, the mean weight on [CLS] is 0.29 to 0.34 in the trained model, and
# its mean effective weight at most 0.03. Its values are less than a tenth as long as the mean, so a
# head that looks there adds little: [CLS] is an **attention sink**. Kobayashi et al. (2020) found
# the same for [SEP] in BERT.
#
# ### Whose vector is it?
# How much does a hidden vector depend on its own token, and how much on the others?

# %% demo=true
hidden_tokens.draw_attribution()

# %% [markdown]
# *Hidden token attribution in three samples of six texts of 12 pieces, after each layer: the mean
# share of the token at the same place, and how often it is the largest share.* A token's own share
# falls from 0.49 after the first layer to 0.21 to 0.22 after the last, where it is still the
# largest at 0.51 to 0.64 of the places. Untrained it falls to 0.74 and stays the largest
# everywhere. In lesson 17 most of the mixing came from the architecture; here most of it was
# learned. So the rows and columns of the last layers stand for one word only in part, as Brunner et
# al. found in BERT.
#
# ## References
# - J. Devlin et al. (2019). *BERT: pre-training of deep bidirectional Transformers.*
#   [arXiv:1810.04805](https://arxiv.org/abs/1810.04805)
# - N. Reimers, I. Gurevych (2019). *Sentence-BERT.*
#   [arXiv:1908.10084](https://arxiv.org/abs/1908.10084)
# - W. Wang et al. (2020). *MiniLM: deep self-attention distillation.*
#   [arXiv:2002.10957](https://arxiv.org/abs/2002.10957)
# - A. van den Oord, Y. Li, O. Vinyals (2018). *Representation learning with contrastive predictive
#   coding.* [arXiv:1807.03748](https://arxiv.org/abs/1807.03748)
# - D. Hendrycks, K. Gimpel (2016). *Gaussian error linear units.*
#   [arXiv:1606.08415](https://arxiv.org/abs/1606.08415)
# - Y. Wu et al. (2016). *Google's neural machine translation system.*
#   [arXiv:1609.08144](https://arxiv.org/abs/1609.08144)
# - G. Brunner et al. (2020). *On identifiability in Transformers.*
#   [arXiv:1908.04211](https://arxiv.org/abs/1908.04211)
# - G. Kobayashi et al. (2020). *Attention is not only a weight.*
#   [arXiv:2004.10102](https://arxiv.org/abs/2004.10102)
