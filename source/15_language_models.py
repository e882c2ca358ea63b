# %% [markdown]
# # 15 · What if there is only a decoder?
#
# The decoder of a translator predicts the next token from the source and the tokens written so far.
# If the source is put in front of these tokens, the decoder needs no encoder. Such a model
# continues a text: it is a **language model**.
#
# **After this lesson** you can
# - say how a prompt sets a task, and turn a task such as summarising into the continuation of a
#   text,
# - build a **decoder-only** model, train it and let it write, and judge
#   it in bits per character,
# - count what encoder-decoder and decoder-only cost for a long text and a short summary,
# - let a decoder read longer texts by **local** and **memory-compressed** attention,
# - read a table that compares such models with trivial baselines,
# - ★ share out tokens among **experts**, and measure how evenly.
#
# **Time** 85 minutes, ★ 35 more · **Points** 11 · **GPU** not needed · **You need** lessons 06 to
# 10 and 13

# %%
import torch

from attention.experiments import language_models as experiments
from autograder import check

torch.set_num_threads(1)  # matrices as small as those of this lesson are faster on one core

# %% [markdown]
# ## One model, many tasks
# A translator translates. For another task it needs other pairs, and a new training. A model that
# predicts the next token of *any* text needs neither, if the text itself says what the task is.
#
# SmolLM2, a small published decoder that you will run in lesson 20, was given the beginning below.
# Three examples say what is to be done, and a fourth waits for its answer. Is the next token the
# right one? Ten words were asked for each task, also with nothing in front of them, and with three
# examples of another task.
#
# <details><summary>The code that ran</summary>
#
# ```python
# ids = torch.tensor([self.tokens.encode(text)])
# length = 16 if kind == ASKED else 1
# new = generate_with_cache(self.model, ids, lambda scores: scores.argmax(dim=1), length)[0]
# ```
# Here `length` is 1, and a word counts as right if its first token is the one that was written.
# </details>

# %% demo=true
experiments.what_examples_do()

# %% [markdown]
# With three examples of the task, 8 or 9 of ten capitals and past tenses are right, and 3 to 6 of
# ten opposites. Without them hardly any is, and examples of another task do not help. No weight was
# changed: the text alone sets the task. It is called a **prompt**, and this use of it **in-context
# learning** (Brown et al., 2020). The decoders that you train in this lesson are much smaller, and
# each does one thing.
#
# ## A task becomes a text to continue
# Any task with an input and an output can be written as one text. Take summaries: write text and
# summary one after the other, with a separator between them, and train a decoder on the result:
#
# $$\text{text}\quad \texttt{SEP}\quad \text{summary}\quad \texttt{EOS}$$
#
# $$p(\text{summary} \mid \text{text}) =
# \prod_t p(w_t \mid \text{text},\ \texttt{SEP},\ w_1 \dots w_{t-1})$$
#
# A causal mask is all that the decoder needs: the summary looks back at the text as it looks back
# at itself.
#
# | name | shape | what it is |
# |---|---|---|
# | `tokens` | `(B, T)` | text, SEP, summary, EOS; then padding |
# | `counted` | `(B, T)` | True = a token that is to be learned |
# | `logits` | `(B, T, vocab_size)` | at position t, scores of the token at t + 1 |
#
# ## What is read, what is predicted
# At each position, what has the model read, and what should it predict?

# %%
row = ["rain", "fell", "all", "day", "SEP", "rain", "EOS"]
print(f"{'t':>2}  {'has read':<30} must predict   counts")
for t in range(len(row) - 1):
    asked, counts = row[t + 1], t + 1 > row.index("SEP")
    print(f"{t:2}  {' '.join(row[: t + 1]):<30} {asked:<14} {'yes' if counts else ''}")

# %% [markdown]
# A pure language model counts all of these tokens in its loss, and so do Liu et al. Here only those
# after SEP count, because the text will be given.
#
# This is how such a batch is made:

# %%
from torch.nn import functional as F

from attention.provided import demand
from attention.provided.data.keywords import SEP
from attention.provided.data.tokens import EOS, PAD

# %% given="join_text_and_summary"
from attention.language_models import join_text_and_summary

# %% [markdown]
# ### Exercise 15.1 · `language_model_loss`
# ●●○ medium · 15 minutes · 2 points
#
# The tokens are both input and target, shifted by one. PAD and `counted` concern the token *to be
# predicted*, not the one just read. Every token that counts has the same weight, in short and in
# long sequences. Scores may be 1000 or more.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Nothing predicts the first token. So drop the last position of one tensor and the first position
# of the other.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `logits[:, :-1]` is (B, T - 1, vocab_size), `tokens[:, 1:]` is (B, T - 1). Use `gather` along the
# last axis, or `F.cross_entropy` on flattened tensors with `reduction="none"`.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# target: tokens without the first
# counts: target is not PAD, and, if given, counted without its first
# loss of each position; 0 where it does not count
# sum, divided by how many count, but at least by 1
# ```
# </details>
# <details><summary>Hint 4 · NaN</summary>
#
# If no token counts, `clamp(min=1)` keeps the divisor above 0. Where a score is -inf, 0 times its
# log-probability is NaN: put a 0 there with `masked_fill` or `torch.where`.
# </details>

# %% exercise="language_model_loss"
from attention.language_models import language_model_loss

# %% check="language_model_loss" points=2
check.language_model_loss(language_model_loss)

# %% [markdown]
# A decoder layer without cross-attention is an *encoder* layer with a causal mask, so we use the
# `Encoder` of lesson 10. Padding needs no mask: it comes at the end, where no real token sees it.
#
# These are its parts:

# %%
from torch import nn

from attention.masked_attention import causal_mask, masked_attention
from attention.tokens_and_positions import embed, sinusoidal_positions
from attention.transformer import Encoder

# %% [markdown]
# ### Exercise 15.2 · `DecoderOnly`
# ●●○ medium · 12 minutes · 2 points
#
# Write `forward`. `embed` and `sinusoidal_positions` from lesson 08 and `causal_mask` from lesson
# 06 are imported. The model is trained below, so a gradient must reach every weight.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Tokens → vectors → plus positions → the stack, under a mask → scores.
# </details>
# <details><summary>Hint 2 · the pieces</summary>
#
# `embed(ids, table)` wants the table itself, `self.embedding.weight`, and scales by √d_model.
# `sinusoidal_positions(positions, d_model)` wants floating-point positions: 0.0, 1.0, … In bfloat16
# 257 would be 256; `torch.promote_types` finds the wider of two dtypes.
# </details>
# <details><summary>Hint 3 · tensors on two devices</summary>
#
# `torch.arange` and `causal_mask` take a `device`. Which one is right?
# </details>

# %% exercise="DecoderOnly"
from attention.language_models import DecoderOnly

# %% check="DecoderOnly" points=2
check.DecoderOnly(DecoderOnly)

# %% given="generate"
from attention.language_models import generate

# %% [markdown]
# ## A model of your own
# Your model learns to spell English numbers below ten thousand, letter by letter. One number in ten
# is kept back.
#
# <details><summary>The code that ran</summary>
#
# ```python
# model = DecoderOnly(30, d_model=64, n_heads=4, d_ff=128, n_layers=2, dropout=0.0)
# optimizer = torch.optim.AdamW(model.parameters())
# schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=steps)
# draw = random.Random(seed)
# batches = (batch_of(draw.sample(known, 32)) for _ in range(steps))
# losses = (language_model_loss(model(tokens), tokens) for tokens in batches)
# with Bar(steps, "a speller of numbers") as bar:
#     return model, descend(model, losses, optimizer, schedule, bar)
# ```
# </details>

# %% demo=true
known, unseen = experiments.known_and_unseen()
print(len(known), "to learn from,", len(unseen), "kept back:", known[20:22])
speller, losses = experiments.learn_numbers(DecoderOnly, language_model_loss, known)
_ = experiments.draw_losses(losses, "nats per letter")

# %% [markdown]
# *Loss against training step, in nats per letter.* The loss cannot fall to 0, because often more
# than one letter can come next. Now the model continues beginnings, greedily:

# %% demo=true
experiments.goes_on(speller, generate)

# %% [markdown]
# No number below ten thousand begins like the third or the fifth. The model continues them anyway.
#
# ### Predict first
# Now each letter is drawn at random (lesson 13). Of 200 texts at temperature 1, how many are
# numbers, spelled correctly to the last letter? And are any of these among the numbers kept back?

# %%
prediction = None  # a number from 0 to 200; None skips this

# %% demo=true
from attention.provided.predictions import compare

right = experiments.draws(speller, generate)
compare(prediction, right[1.0], "numbers among the texts at temperature 1")

# %% [markdown]
# At temperature 1 about four texts in five are numbers, with two other seeds as well. With all
# three seeds together about one in ten of these numbers had been kept back. So the model has
# learned how numbers are spelled, not a list of numbers.
#
# ## It writes English
# Now your `DecoderOnly` reads three novels by Jane Austen, *Pride and Prejudice*, *Sense and
# Sensibility* and *Emma*: 2.2 million characters, in the tokens of lesson 08, with 768 merges
# learned from them.

# %%
from attention.provided.data import novels
from attention.tokens_and_positions import bpe_decode, bpe_encode

merges = experiments.merges()
ids = bpe_encode(novels.split()[0][:117], merges)
print(len(ids), "tokens:", "|".join(bpe_decode([i], merges) for i in ids))

# %% [markdown]
# A batch is eight passages of 129 tokens, and every token counts. First, sixty steps:
#
# <details><summary>The code that ran</summary>
#
# ```python
# ids = tokens_of(text or novels.split()[0])
# draw = torch.Generator().manual_seed(seed)
# optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98))
# schedule = torch.optim.lr_scheduler.OneCycleLR(
#     optimizer, rate, total_steps=steps, pct_start=max(0.1, 2 / steps)
# )
#
# def loss(_: int) -> Tensor:
#     begin = torch.randint(len(ids) - READ, (PASSAGES, 1), generator=draw)
#     passages = ids[begin + torch.arange(READ + 1)]
#     return language_model_loss(model(passages), passages)
#
# with Bar(steps, "passages") as bar:
#     return descend(model, map(loss, range(steps)), optimizer, schedule, bar, max_norm=1.0)
# ```
# </details>

# %% demo=true
from attention.provided.training_steps import fewer

torch.manual_seed(0)
novice = DecoderOnly(256 + len(merges), **experiments.SIZES)
losses = experiments.learn_novels(novice, language_model_loss, fewer(60))
_ = experiments.draw_losses(losses, "nats per token")
print(experiments.go_on(novice, generate, "It is a truth", temperature=1.0))

# %% [markdown]
# *Loss against training step, in nats per token.* The model knows which tokens are frequent, and
# little else. Here is a `DecoderOnly` with weights stored after 3 000 steps, some five minutes on
# one core:

# %% demo=true
author = experiments.novelist(DecoderOnly)
for temperature in (0.5, 0.8, 1.0):
    text = experiments.go_on(author, generate, "It is a truth", temperature)
    print(f"temperature {temperature}\n{text}\n")

# %% [markdown]
# Most words are English, sentences begin and end, and people from the novels appear, but beyond a
# few words the text makes no sense. At 0.5 it repeats itself; at 0.8 and 1 it invents words.
#
# ### How good is it?
# A loss in nats per token depends on the length of the tokens; one in **bits per character** does
# not. Divide the loss by ln 2, multiply by the number of tokens and divide by the number of
# characters. We test on *Persuasion*, which was not read in training. The control is an *n-gram
# model*: it counts which token followed the last few tokens in the same novels, smoothed by the
# method of Kneser and Ney. It may keep as many counts as your model has weights.
#
# <details><summary>The code that ran</summary>
#
# ```python
# ids, half, total = tokens_of(text), READ // 2, 0.0
# starts = torch.arange(0, len(ids) - READ, half)
# for begin in starts.split(16):
#     passages = ids[begin[:, None] + torch.arange(READ + 1)]
#     log_p = torch.log_softmax(model(passages[:, :-1]), dim=2)[:, half:]
#     total -= log_p.gather(2, passages[:, half + 1 :, None]).sum().item()
# return total / math.log(2) / (len(starts) * half) * len(ids) / len(text)
# ```
# </details>
#
# ### Predict first
# If all characters were equally likely, each would cost 6.2 bits. How many does your decoder need
# after 3 000 steps? Fewer than the n-gram model, or more?

# %%
prediction = None  # bits per character, from 0 to 6.2; None skips this

# %% demo=true
bits = experiments.judged_on_persuasion()
compare(prediction, sorted(bits)[1], "bits per character of your decoder, median of three seeds")

# %% [markdown]
# Your decoder needs about 1.8 bits. The n-gram model with as many counts is still slightly better,
# 1.78 against 1.79 with all three seeds. After 700 steps, less than one reading of the novels, the
# n-gram model was far ahead.
#
# ## What does it cost?
# A summary is much shorter than its text: M tokens are read and N written. What does attention cost
# an encoder-decoder? We count the *visible* scores, which no mask hides, of one head in one layer,
# at 4 bytes each.

# %%
N = 200
print(f"{'M':>6}  {'encoder M²':>12}  {'cross MN':>10}  {'decoder N²/2':>12}  {'memory of M²':>12}")
for M in (200, 1000, 11000):
    print(f"{M:6}  {M * M:12,}  {M * N:10,}  {N * N // 2:12,}  {4 * M * M / 1e6:9.1f} MB")

# %% [markdown]
# For a long text, nearly all of the cost is in the encoder. Is an encoder needed at all? And does
# every position have to look at every other one? Liu et al. (2018) asked both questions when their
# models wrote the first section of Wikipedia articles from up to 11 000 tokens of sources.
#
# In one sequence of M + N tokens, a causal mask leaves about (M + N)²/2 scores visible. Encoder,
# cross-attention and decoder have M² + MN + N²/2. We time them for M = 2 048 and N = 64, with dense
# attention, which computes every score, and with PyTorch's fused kernel (lesson 18), which skips
# hidden ones. The two indented rows are controls: a mask that hides nothing, and no mask.
#
# <details><summary>The code that ran</summary>
#
# ```python
# ways: list[Callable[[], Tensor]] = [
#     functools.partial(masked_attention, q, k, k, mask),
#     functools.partial(fused, q, k, k, given),
# ]
# with torch.no_grad():
#     spent[name] = [timing.shortest(way) for way in ways]
# ```
# `fused` is `F.scaled_dot_product_attention`, with `is_causal=True` for a decoder.
# </details>

# %% demo=true
spent = experiments.what_it_costs(M=2048, N=64)

# %% [markdown]
# For M much larger than N, a decoder alone needs half as many scores as an encoder. With dense
# attention it takes about twice the encoder's time all the same. That is the price of the mask, not
# of the scores that it hides: without its mask it is as quick as the encoder, and an encoder that
# is given a mask is as slow. With the fused kernel, which skips hidden scores, a decoder alone is
# quicker at this length. It also has one set of weights instead of two. The price: the text is read
# in one direction only.
#
# But half of M² still grows with M². To save more, Liu et al. let each position look at fewer
# others, and alternate two kinds of layers:
# - **local**: the sequence is cut into blocks, and attention stays within a block;
# - **memory-compressed**: a convolution makes one key and one value of every few neighbours, a
#   *stretch*. All queries stay, and each sees the stretches that have ended.

# %% demo=true
_ = experiments.who_may_look(T=24, block=6, stride=3)

# %% [markdown]
# *Which of 24 positions may look at which; the titles count the pairs. Queries down, keys across;
# after compression only 8 keys are left.* In a local layer no position sees beyond its block. In a
# compressed layer two positions in three do not even see themselves, because their stretch has not
# ended. Each kind makes up for what the other lacks.
#
# ### Exercise 15.3 · `local_block_attention`
# ●●○ medium · 15 minutes · 2 points
#
# A (T, T) mask would save nothing. Make the blocks an axis of their own: `masked_attention` takes
# any number of axes in front. The check also calls it with half a million positions: a loop over
# blocks is quick enough, one over positions is not. From here on, make new tensors on the device of
# the arguments, `q.device`, and with their dtype: a right answer that does not keeps three quarters
# of its points.
#
# <details><summary>Hint 1 · the idea</summary>
#
# (..., T, d) becomes (..., n_blocks, block, d). Then it is ordinary causal attention over `block`
# positions, many times side by side.
# </details>
# <details><summary>Hint 2 · the rest</summary>
#
# T need not be a multiple of block. `F.pad(x, (0, 0, 0, extra))` adds rows of zeros at the end; `-T
# % block` says how many. Can a real position see them?
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# fill up q, k and v at the end
# unflatten the axis of the positions into (blocks, block)
# masked attention with a causal mask of (block, block)
# flatten both axes again, and keep the first T positions
# ```
# </details>

# %% exercise="local_block_attention"
from attention.language_models import local_block_attention

# %% check="local_block_attention" points=2
check.local_block_attention(local_block_attention)

# %% [markdown]
# In the other kind of layer, one key stands for a stretch. Each place in the stretch has its own
# matrix: $y_j = \sum_s x_{j \cdot \mathrm{stride} + s}\, W_s$.

# %% given="compress"
from attention.language_models import compress

# %% [markdown]
# ### Exercise 15.4 · `memory_compressed_attention`
# ●●● hard · 15 minutes · 2 points
#
# The keys and values are already compressed. Which query may see which key? The mask has T rows,
# but only T // stride columns, and the first positions see nothing.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Key j holds several positions. If one of them is still to come, the key reveals the future. Which
# of its positions is the last?
# </details>
# <details><summary>Hint 2 · the mask</summary>
#
# Compare a column of query positions with a row of each key's last position: (T, T // stride).
# </details>
# <details><summary>Hint 3 · NaN in the first rows</summary>
#
# `masked_attention` gives zeros to a query that may attend to nothing. A softmax of your own does
# not.
# </details>

# %% exercise="memory_compressed_attention"
from attention.language_models import memory_compressed_attention

# %% check="memory_compressed_attention" points=2
check.memory_compressed_attention(memory_compressed_attention)

# %% [markdown]
# ### Break it
# Suppose the mask asks where a stretch *begins*, not where it ends. We change token 7 and see where
# the output changes.


# %%
def leaky(q, k, v, stride):
    t, j = torch.arange(len(q))[:, None], torch.arange(len(k))
    return masked_attention(q, k, v, j * stride <= t)


attentions = {"whole stretches": memory_compressed_attention, "leaky": leaky}
experiments.changed_by_token_7(attentions, compress)

# %% [markdown]
# In the leaky layer, position 6 already sees token 7. In training, such a model could copy the next
# token, which is missing when it writes.
#
# ## Time and memory
# Four kinds of attention, with 2 heads of 32 numbers:

# %% demo=true
_ = experiments.time_and_memory(local_block_attention, compress, memory_compressed_attention)

# %% [markdown]
# *Time, and memory of all tensors that are made, against length; all axes logarithmic, one run on
# one machine.* Compression by 3 needs less memory than dense attention, but its curve is nearly as
# steep: a third of T² is still quadratic. The local curve is less steep. The fused kernel, which
# never stores its scores, needs the least memory by far.
#
# ## Which reader finds the words?
# Now we compare these models on a task that can be checked exactly. Four of twelve topic words are
# hidden in 128 words. The summary is these four, in alphabetical order:

# %%
from attention.provided.data import keywords

texts, summaries = keywords.make(1, 128, torch.Generator().manual_seed(3))
print(keywords.text(texts[0]), "\n→", keywords.text(summaries[0]))

# %% [markdown]
# Which model finds most of them with about the same number of scores? We count the visible scores
# of one head, summed over the layers. A dense decoder that reads the first 64 words needs 4 970.
# One that alternates local blocks of 32 and compression by 4 reads all 128 words with 4 344. All
# models have d_model = 64 and learn from 600 batches of 16 texts, with three seeds. (`python -m
# benchmarks.language_models` measures again.)
#
# <details><summary>The code that ran</summary>
#
# ```python
# texts, summaries = keywords.make(BATCH, words, draw)
# loss = loss_of(model, texts[:, :read], summaries)
# return loss + balance * sum(torch.as_tensor(mixture.balance) for mixture in experts)
# ```
# AdamW takes a step for each such loss; `balance` concerns the experts alone (★).
# </details>
#
# ### Predict first
# Always answering with the same four words finds 0.34 of the topic words. What share does a model
# find if it reads half of each text? And if it reads all of it, but coarsely?

# %%
prediction = None  # share of topic words from half of each text, from 0 to 1; None skips this

# %% demo=true
found = experiments.readers()
half = sorted(found["models"]["decoder only, short"]["found"])[1]
compare(prediction, half, "found by the decoder that reads half, median of three seeds")

# %% [markdown]
# *A point is one seed: share of the topic words found in 500 new texts. Dotted: always the same
# four words. Dashed: a perfect reader of the first 64 words, who guesses the rest.* Models that
# read half a text find about 0.6 of the words and stay below the dashed line, with an encoder or
# without. The dense decoder that reads everything finds nearly all words, with 3.6 times as many
# scores. *Local, then compressed* needs fewer scores than the short decoder, and beats the dashed
# line with all three seeds: 0.96, 0.99 and only 0.80. So on this task, with a fixed number of
# scores, reading everything coarsely beats reading half, as the paper argues.
#
# What else does the table show?
# - **Local alone** does not work: the block of the summary holds no word of the text.
# - **Compressed alone** does as well as the two in turns, or better: here no word depends on its
#   neighbours.
# - **Positions** make no clear difference. Word order does not matter here, and a causal mask
#   already tells a decoder something about positions (Kazemnejad et al., 2023).
# - **Sizes** differ, because the convolutions add weights. We compare scores, not sizes.
# - **Experts** come at the end (★).
#
# For Wikipedia, Liu et al. (2018, table 4) report the numbers below. Log-perplexity is the mean
# loss of a token. ROUGE-L measures how many of the reference's words come back in the right order:
#
# | model | tokens read | log-perplexity | ROUGE-L |
# |---|---|---|---|
# | encoder-decoder | 500 | 2.47 | 34.2 |
# | decoder only | 4 000 | 2.22 | 33.6 |
# | local and compressed, in turns | 11 000 | 2.05 | 36.2 |
# | the same, 128 experts (★) | 11 000 | 1.93 | 37.9 |
#
# Several things change at once from row to row, so no row shows what each contributes.
#
# ## Limits
# Finding topic words shows what a model has seen, not what it can do with it. A language model
# learns which text comes next, not whether it is true.
#
# ## Something of your own
# Train a new model, made like `novice`, on a text of your choice: lyrics, recipes, chess games;
# some 100 000 characters are enough. `experiments.learn_novels(model, language_model_loss, 300,
# text=text)` trains, and `experiments.go_on` writes. Put the best ten lines that it wrote beside
# ten real ones. Can a friend tell them apart?

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# A decoder alone can read and write, if text and summary are one sequence and the loss counts what
# is to be written. After three novels it writes English words, but little sense. Local blocks and
# compressed keys let it read more for the same number of scores.
#
# **Next** [16 · What else has tokens?](../16_encoders_and_vision/16_encoders_and_vision.ipynb) Now
# the encoder is left alone: it classifies documents and images.
#
# ## Open questions
# No points, no check; the notebook has what is needed.
# 1. Keep every number with “seven hundred” in it from the speller, instead of one number in ten.
#    Will it write such numbers without a beginning? Will it go on correctly when “seven hundred”
#    is given?
# 2. In the pictures with 24 positions: which earlier positions can reach a position through two
#    local layers, through two compressed ones, or through one of each? Does the order matter?

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. Hardly ever: of 400 texts at temperature 1 a single one, with each of the seeds 0, 1
#    and 2 (311 to 322 of the 400 were numbers). But given “seven hundred” it wrote a number in 142
#    to 157 cases of 200, and given “two thousand seven hundred” in 172 to 185. It has learned that
#    *hundred* never follows *seven*; what follows *hundred* it knows from the other hundreds.
# 2. Of the 300 pairs of a position and an earlier one, or itself, two local layers connect 84: the
#    blocks stay apart. Two compressed layers connect 292: what is missing is the position just
#    before, in the same stretch. One of each connects all 300, in either order. (Residuals count as
#    a way from a position to itself.)
#
# </details>

# %% [markdown]
# ## ★ More weights, not more work
# In a **mixture of experts** (Shazeer et al., 2017) there are E feed-forward networks instead of
# one, and a small linear layer, the router, picks k of them for each token. The parameters grow
# with E, the work for a token only with k.
#
# $$y = \sum_{e\ \in\ \text{top } k} g_e \cdot \mathrm{FFN}_e(x)
# \qquad g = \mathrm{softmax}\big(\text{the } k \text{ best of } x W_r\big)$$
#
# ### Exercise 15.5 · `top_k_gate` ★
# ●●○ medium · 10 minutes · 2 points
#
# From the scores of E experts for each token, make the weights $g$: k of them sum to 1, the others
# are 0. The router learns through these weights.
#
# <details><summary>Hint 1 · the idea</summary>
#
# First choose, then softmax over the chosen ones, then put the weights back to their places.
# </details>
# <details><summary>Hint 2 · the functions</summary>
#
# `topk` gives values and indices, (N, k) each. `scatter` writes numbers to the places that indices
# name. Where the k-th best score is a tie, k are chosen all the same.
# </details>

# %% exercise="top_k_gate"
from attention.language_models import top_k_gate

# %% check="top_k_gate" points=2
check.top_k_gate(top_k_gate)

# %% [markdown]
# An expert that is chosen learns, and may then be chosen more often, until it gets all tokens. So a
# second loss is added, with a small factor. It takes the share $f_e$ of choices that fell on expert
# e and its mean probability $P_e$ (Fedus et al., 2022):
#
# $$L_\text{balance} = E \sum_e f_e\, P_e$$
#
# Counts have no gradient, probabilities do: reducing the sum lowers the probability of experts that
# are chosen too often.
#
# ### Exercise 15.6 · `load_balance_loss` ★
# ●●○ medium · 10 minutes · 1 point
#
# Write this loss. If all experts get equally many tokens, with the same probabilities, it is 1; if
# the same k of them get all tokens and all of the probability, it is E / k.
#
# <details><summary>Hint 1 · the shares</summary>
#
# `gates > 0` marks the choices. Count them for each expert, and divide by the number of all
# choices, so that the shares add up to 1 for k > 1, too.
# </details>
# <details><summary>Hint 2 · the probabilities</summary>
#
# Take the softmax of *all* scores of a token, then the mean over the tokens.
# </details>

# %% exercise="load_balance_loss"
from attention.language_models import load_balance_loss

# %% check="load_balance_loss" points=1
check.load_balance_loss(load_balance_loss)

# %% given="MixtureOfExperts"
from attention.language_models import MixtureOfExperts

# %%
torch.manual_seed(0)
mixture = MixtureOfExperts(d_model=64, d_ff=64, n_experts=4, k=2)
mixture(torch.randn(2, 50, 64))
print(f"shares: {mixture.shares}, balance: {mixture.balance.item():.3f}")
experiments.mixture_beside_one(mixture)

# %% [markdown]
# The mixture makes as many multiplications as one network with 128 hidden units, and stores twice
# as many weights. By the clock it takes about twice as long here: many small products, and tokens
# that are collected and put back.
#
# ### ★ Who works?
# With the topic words, experts add a third to the weights, and three seeds show no clear gain. But
# which experts do the work?

# %% demo=true
experiments.shares_of_experts(found)

# %% [markdown]
# *Share of choices that fell on the most chosen of four experts, on the test texts. A point is a
# seed; dashed: an even spread.* In layer 1 all three seeds are more even with the balance loss
# (0.28 to 0.33) than without it (0.35 to 0.46). In layer 0 there is no such difference.
#
# ## ★ Summaries that people wrote
# By convention, the first line of a docstring sums up the rest (PEP 257). So the rest is a text,
# and the first line its summary. Our pairs come from Python, numpy and PyTorch; here are two.

# %%
from attention.provided.data import docstrings

rows = docstrings.load()
for row in (next(row for row in rows if row.name == name) for name in ("merge", "cumsum")):
    print(f"{row.name}: {row.body[:84]} …\n→ {row.summary}\n")

# %% [markdown]
# ### Predict first
# When functions are copied, so are their docstrings. Two rows are *near twins* if they share at
# least half of their runs of five words. If we draw one row in ten at random for tests, what share
# of those has a near twin in training?

# %%
prediction = None  # a share from 0 to 1; None skips this

# %% demo=true
compare(prediction, experiments.near_twins(rows), "with a near twin in training, drawn at random")

# %% [markdown]
# Drawn at random, 9.1 % of the test rows have a near twin in training. A *component* holds all rows
# that are linked by near twins, so a split that keeps components whole leaves none. We use this
# split.
#
# ### How good is a first line?
# A docstring can have many good first lines. **ROUGE-L** (Lin, 2004) finds the longest sequence of
# words that the written line and the wanted one share in the same order, gaps allowed. Divide its
# length once by the length of the written line and once by that of the wanted one: ROUGE-L is the
# harmonic mean of these two shares.

# %% demo=true
row = rows[0]._replace(summary="Return the mean of a tensor.")
for written in ("Return the tensor.", "Return the mean of a tensor.", "Tensor mean."):
    print(f"{docstrings.rouge_l([written], [row])[0]:.3f}  {written}")

# %% [markdown]
# The first line shares all 3 of its words, which are 3 of the summary's 6: 2 · 1 · 0.5 / 1.5. The
# last line means much the same as the summary but scores least: ROUGE counts words, not meanings.
#
# ### Predict first
# One rule takes the first words of the rest. A second takes the name of the function, cut into
# words, and a third writes “Return the” before it. Which is best, and what ROUGE-L does it reach?

# %%
prediction = None  # ROUGE-L of the best rule, from 0 to 1; None skips this

# %% demo=true
reached = experiments.rules(rows)
compare(prediction, max(reached.values()), "ROUGE-L of the best rule")

# %% [markdown]
# “Return the” and the name is best, with 0.244. Can a model beat this rule? A `DecoderOnly` with
# three layers reads the name and the beginning of the rest, and writes greedily. `python -m
# benchmarks.docstrings` trains it with three seeds, and tests on 250 rows.
#
# <details><summary>The code that ran</summary>
#
# ```python
# tokens, counted = join_text_and_summary(*zip(*pairs, strict=True))
# return language_model_loss(model(tokens), tokens, counted)
# ```
# </details>

# %% demo=true
record = experiments.first_lines()

# %% [markdown]
# *ROUGE-L of 250 first lines against the minutes of training. A point is one seed; the lines are
# the rules, on the same rows.* After six minutes a model does about as well as the first words of
# the rest, and no point comes near the rules with the name. What the models write sounds like a
# docstring, but often has little to do with the function:

# %% demo=true
experiments.examples_of(record)

# %% [markdown]
# ## References
# - P. J. Liu et al. (2018). *Generating Wikipedia by summarizing long sequences.*
#   [arXiv:1801.10198](https://arxiv.org/abs/1801.10198)
# - T. Brown et al. (2020). *Language models are few-shot learners.*
#   [arXiv:2005.14165](https://arxiv.org/abs/2005.14165)
# - N. Shazeer et al. (2017). *Outrageously large neural networks: the sparsely-gated
#   mixture-of-experts layer.* [arXiv:1701.06538](https://arxiv.org/abs/1701.06538)
# - W. Fedus, B. Zoph and N. Shazeer (2022). *Switch Transformers: scaling to trillion parameter
#   models with simple and efficient sparsity.* [arXiv:2101.03961](https://arxiv.org/abs/2101.03961)
# - A. Kazemnejad et al. (2023). *The impact of positional encoding on length generalization in
#   Transformers.* [arXiv:2305.19466](https://arxiv.org/abs/2305.19466)
# - C.-Y. Lin (2004). *ROUGE: a package for automatic evaluation of summaries.*
#   [aclanthology.org/W04-1013](https://aclanthology.org/W04-1013)
