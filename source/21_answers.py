# %% [markdown]
# # 21 · What makes it answer?
#
# In lesson 20 a published model answered in your layers. Its 134.5 million numbers came out of a
# file of 98 megabytes, and all it does is continue a text. In this lesson you find out how the
# numbers fit, why the model answers, how to teach it something new on a laptop, and how it can
# write faster and longer.
#
# **After this lesson** you can
# - read weights of **4 bits**, and say what they cost,
# - turn a question into a text whose continuation is the answer,
# - teach a model with **LoRA**, which trains 2 % as many numbers as the model has,
# - write several tokens in one call with a **draft**, and show that the distribution stays the
#   same,
# - say why the first token must stay in the cache (**attention sinks**),
# - ★ read texts longer than those of the training, with another **base**.
#
# **Time** 100 minutes, ★ 10 more · **Points** 14 · **GPU** not needed · **You need** lessons 08,
# 13, 15 and 20
#
# `autograder data fetch smollm2` fetches the model, 98 MB. Without it you can do all exercises, and
# you see what was recorded; a few cells say that the model is not here.

# %%
import torch
from torch import nn
from torch.nn import functional as F

from autograder import check

torch.set_num_threads(1)  # the small models are faster on one core

# %% [markdown]
# ## 98 megabytes
# Four bytes for each of 134.5 million float32 numbers make 538 MB. The file has 98 MB, 5.9 bits per
# number. How?
#
# Take 32 neighbouring weights of a row: a **block**. Between the smallest and the largest of them
# lie 16 evenly spaced values, both ends included. Each weight is rounded to the nearest one, and
# only its number from 0 to 15 is stored, its **code**, which takes 4 bits. To read the block you
# need two more numbers: the smallest value, and the **scale**, the distance from one value to the
# next:
#
# $$w = \text{scale} \cdot \text{code} + \text{smallest}$$
#
# The format is called Q4_1. A block takes 2 + 2 + 16 = 20 bytes, 5 bits per number. The table of
# the embedding is stored with 8 bits, and the norms in float32. With the vocabulary this makes 98
# MB.
#
# ### Exercise 21.1 · `unpack_q4`
# ●●○ medium · 12 minutes · 2 points
#
# Turn blocks of 20 bytes into blocks of 32 numbers.
#
# | bytes | hold |
# |---|---|
# | 0 and 1 | the scale, a float16 |
# | 2 and 3 | the smallest value, a float16 |
# | 4 to 19 | the 32 codes, two in each byte |
#
# The low four bits of the first of these 16 bytes are code 0, and its high four bits are code 16.
# The next byte holds the codes 1 and 17, and so on to the codes 15 and 31. The result is float32.
#
# <details><summary>Hint 1 · two bytes as a float16</summary>
#
# `bytes.view(torch.float16)` reads each pair of bytes along the last axis as one number. It needs
# bytes that lie together in memory: `clone()` a slice first.
# </details>
# <details><summary>Hint 2 · half a byte</summary>
#
# `byte & 15` keeps the low four bits, and `byte >> 4` moves the high four down. With 0x21 in the
# byte, that is 1 and 2.
# </details>
# <details><summary>Hint 3 · the shapes</summary>
#
# Scale and smallest value are (n, 1), the low and the high codes (n, 16) each. One after the other
# they are (n, 32).
# </details>

# %% exercise="unpack_q4"
from attention.answers import unpack_q4

# %% check="unpack_q4" points=2
check.unpack_q4(unpack_q4)

# %% [markdown]
# ### Exercise 21.2 · `quantize`
# ●●○ medium · 10 minutes · 2 points
#
# Now the other direction, for any number of bits. Cut each row of a matrix into blocks, and replace
# each number by the nearest of the 2^bits values that are evenly spaced from the smallest to the
# largest of its block, both ends included. Return the rounded numbers themselves, not their codes.
#
# A block of equal numbers stays as it is. Its scale is 0, so take care not to divide by it.
#
# <details><summary>Hint 1 · how many steps</summary>
#
# Between 4 values there are 3 steps. With b bits, how long is one?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `unflatten` cuts an axis in two: (n_out, n_in / block, block). `amin` and `amax` along the
# last axis, with `keepdim=True`, are (n_out, n_in / block, 1).
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# scale = (largest − smallest) / number of steps
# code = (number − smallest) / scale, rounded      (scale 0: divide by 1)
# return smallest + scale · code, in the shape of the matrix
# ```
# </details>

# %%
from attention.provided import demand  # refuses numbers that make no sense

# %% exercise="quantize"
from attention.answers import quantize

# %% check="quantize" points=2
check.quantize(quantize)

# %% [markdown]
# What does rounding cost? The small writer of lesson 20 ships in 16 bits, so it can be rounded and
# compared with itself. Its matrices are rounded by your `quantize`; then it reads a novel that it
# was not trained on.
#
# <details><summary>The code that ran</summary>
#
# ```python
# error = quantize(row, bits, BLOCKS[block] or row.numel()) - row
# if seed is not None:
#     noise = torch.randn(row.shape, generator=generator)
#     error = noise * error.square().mean().sqrt()
# row += error
# ```
# This is done for each matrix. With a seed, noise takes the place of the rounding error.
# </details>
#
# ### Predict first
# In blocks of 32, how many bits per code does it take for the loss to rise by less than 0.01 bits
# per character?

# %%
prediction = None  # from 2 to 8; None skips this

# %% demo=true
from attention.experiments import answers as experiments
from attention.provided.predictions import compare

enough = experiments.draw_quantized(quantize)
compare(prediction, enough, "bits that are enough")

# %% [markdown]
# *Bits per character that rounding adds, against the bits that each stored number takes, its share
# of scale and smallest value included. Small dots: Gaussian noise as large as the rounding error,
# in place of it, three seeds. Below 0.001 the axis is linear.* Unrounded, the loss is 1.80.
#
# - Four bits in blocks of 32 add 0.006. With each bit less the values lie twice as far apart, so
#   the squared errors are four times as large. What they add grows by a factor of 2 to 8.
# - Noise costs about as much as rounding. It is the size of the errors that counts.
# - In the layers, blocks gain no more than their scales cost: 3 bits in blocks of 32 take 4 bits
#   per number, and raise the loss as much as 4 bits with one scale for a whole matrix. In the
#   table, whose rows differ more, blocks pay.
#
# The published file holds SmolLM2 in 4 bits only. How much its rounding cost cannot be measured
# from the file: the weights of 16 bits would be needed. What can be measured is one more rounding.

# %% demo=true
experiments.show_rounded_again()

# %% [markdown]
# *SmolLM2's layers rounded once more, in blocks of 32; “noise” is Gaussian noise of the same size.
# The perplexity is that of 512 tokens of* Persuasion. Four bits change nothing: each weight already
# is one of its block's 16 values. Three bits, which cost the small writer one percent, make SmolLM2
# ramble, and noise does the same. Two errors come together here, that of the file and that of your
# rounding. This does not say whether three bits of the unrounded weights would be enough.
#
# ## A text that goes on with an answer
# A language model continues a text, and nothing else. Here the same weights, which your `unpack_q4`
# took out of the file, read four texts that contain the same question:

# %% demo=true
from attention.experiments import modern_decoder
from attention.modern_decoder import ModernDecoder, generate_with_cache
from attention.provided.models.decoders import smollm2

question = "What is the capital of France?"
texts = (
    question,
    f"Q: {question}\nA:",
    f"<|im_start|>user\n{question}<|im_end|>\n",
    f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n",
)
goes_on = modern_decoder.writer(ModernDecoder, generate_with_cache, unpack_q4=unpack_q4)
for text in texts:
    print(repr(text), "→", repr(goes_on(text, 30)), end="\n\n")

# %% [markdown]
# To the bare question the model says nothing: its first token is the end mark. After *A:* an answer
# is what comes next, and then the model invents a *B:*. The marks of a conversation say more
# plainly whose turn it is. Without the last line the model writes that line itself, and then
# answers.
#
# So no switch makes it answer: the text is simply one in which an answer comes next. The marks were
# learned: after its training on texts, the model was trained further on conversations in this form
# (Allal et al., 2025).
#
# ### Examples
# In lesson 15 three examples in front of a question said what was wanted. Is it their answers that
# say so? Then wrong answers should spoil it. As a control, the answers of the three examples change
# places, so that each stands beside another's question (Min et al., 2022, tried this on larger
# models).
#
# <details><summary>The code that ran</summary>
#
# ```python
# random.Random(seed).shuffle(pairs)
# answers = [pairs[(number + moved) % 3][1] for number in range(3)]
# text = "".join(f"{one[0]}: {answer}\n" for one, answer in zip(pairs, answers, strict=False))
# return text, pairs[3:]
# ```
# `moved` is 1 where answers are exchanged. The last ten pairs are asked for.
# </details>

# %% demo=true
_ = experiments.draw_prompts()

# %% [markdown]
# *Right answers of ten, a dot for each seed, which draws the three examples. A stroke is the
# median.* With the answers exchanged, capitals lose one or two right answers of ten, and past
# tenses two to four. Opposites, which were the hardest, lose most of theirs. But 64 of all 90
# answers are still of the kind that was asked for, a capital, an opposite or a past tense, and two
# thirds of these are right. So examples say above all *which* of the things that the model knows
# are wanted. Wrong answers disturb this, but do not undo it.
#
# Asked as a question, in the marks of a conversation, it needs no example for capitals and
# opposites: an answer counts if the word is among its first 16 tokens. Asked for the past tense of
# *see*, it says *see*, although with examples it knew better.
#
# ## Taught by its answers alone
# A prompt changes what stands before an answer, but no number in the model. What the model does not
# know, no prompt can bring out. Ask SmolLM2 for the number of lesson 02:

# %% demo=true
asked = smollm2.prompt([("user", "In German: nine hundred thirty one")], system="")
print(goes_on(asked, 30))

# %% [markdown]
# So it has to learn, from pairs of a question and an answer. Two things differ from the training in
# lesson 20: which tokens count, and which numbers change.
#
# ### Exercise 21.3 · `answer_loss`
# ●●○ medium · 12 minutes · 2 points
#
# A row of `tokens` holds a question, its answer, and PAD up to the end. `scores[:, t]` says what
# follows token t, as in lesson 15. Take the cross-entropy of the answers alone: the mean over all
# tokens of all answers. The question, which is `asked` tokens long, is read and never guessed; PAD
# does not count either.
#
# <details><summary>Hint 1 · one place further</summary>
#
# The score of the first token of the answer stands at the last token of the question.
# </details>
# <details><summary>Hint 2 · the tools</summary>
#
# `F.cross_entropy(..., reduction="none")` gives one loss for each token; it wants the classes on
# axis 1. A mask (B, T − 1) picks those of the answers.
# </details>

# %%
from attention.provided.data.tokens import PAD

# %% exercise="answer_loss"
from attention.answers import answer_loss

# %% check="answer_loss" points=2
check.answer_loss(answer_loss)

# %% [markdown]
# ### Two thin matrices
# Adam keeps two averages for each number that learns (lesson 11). For all 134.5 million this takes
# 2.2 GB with weights and gradients, and if you teach the model ten things, you have ten models of
# 538 MB. Hu et al. (2022) left the weights as they are, and put beside each matrix W a product of
# two thin ones:
#
# $$W x + \text{scale} \cdot B A x, \qquad A: (r, d_\text{in}), \quad B: (d_\text{out}, r)$$
#
# The product B A has the size of W, but its **rank** is at most r, as in lesson 04. With r = 8, the
# 576 · 576 numbers of W_q stay, and 8 · (576 + 576) learn. This is **LoRA**, low-rank adaptation.
#
# ### Exercise 21.4 · `LowRank`
# ●●○ medium · 15 minutes · 3 points
#
# Graded in three parts: nothing changes at first (1), the update (1), merged (1).
#
# - **Nothing changes at first.** The layer holds `linear`, whose weight and bias no longer learn,
#   and two matrices that do: `A`, with `rank` rows of d_in random numbers, and `B`, (d_out, rank),
#   all zeros. So a new LowRank computes what `linear` computes.
# - **The update.** What `linear` gives, plus `scale` · B A x.
# - **Merged.** `merged()` returns a new nn.Linear with the weight W + scale · B A and the same
#   bias, if there is one. The layer itself stays as it is.
#
# <details><summary>Hint 1 · numbers that do not learn</summary>
#
# `requires_grad_` of a module, given False, freezes all of its parameters.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# x is (..., d_in), `x @ self.A.T` (..., rank), and that times `self.B.T` is (..., d_out).
# </details>
# <details><summary>Hint 3 · a new layer</summary>
#
# `copy.deepcopy` of a layer is a layer of its own with the same weight and bias.
# </details>

# %%
import copy  # the next exercise may use it

# %% exercise="LowRank"
from attention.answers import LowRank

# %% check="LowRank" points=3
check.LowRank(LowRank)

# %% [markdown]
# Now teach it. All 210 matrices of the layers got a LowRank of rank 8, and these learned from
# questions such as *In German: nine hundred thirty one*, with answers such as
# *neunhunderteinunddreißig*, all below 1 000. Forty numbers were kept out, for the test.
#
# <details><summary>The code that ran</summary>
#
# ```python
# learned = [weight for weight in model.parameters() if weight.requires_grad]
# optimizer = torch.optim.AdamW(learned, rate, weight_decay=0.0)
# falling = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
# draw = random.Random(seed)
# for _ in range(steps):
#     ids, lengths = batch(tokens, draw.sample(pairs, min(size, len(pairs))))
#     with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
#         scores, _ = model(ids)
#     loss = answer_loss(scores.float(), ids, lengths)
#     optimizer.zero_grad()
#     loss.backward()
#     optimizer.step()
#     falling.step()
# ```
# </details>

# %% demo=true
from attention.experiments import low_rank

_ = low_rank.draw_teaching()

# %% [markdown]
# *Share of the held-out numbers that are spelled without an error, a dot for each seed; 80 steps of
# 8 examples, so not even one look at each number.* Rates were chosen for each row by 40 other
# numbers, with one seed.
#
# - LoRA of rank 8 spells 31 to 33 of the 40, before it 0. Rank 1, with an eighth as many numbers,
#   spells 25 to 32.
# - As many numbers, learned in one layer alone, do less: 14 to 22 in the middle of the model, and 1
#   at its end, where nothing comes after it.
# - If each number of the training gets the answer of another one, none or one of the 40 is right.
#   So the update did not learn these by heart: it learned how German numbers are built.
#
# And what became of the rest? Eight other questions were asked before and after.

# %% demo=true
low_rank.show_other_answers()

# %% [markdown]
# Before, seven of the eight answers have the right word in them. After 80 steps on one kind of
# question, the capital of France is *fünfhundertdreißig*. The 134.5 million weights are as they
# were, and the update drowned what they know. What a model should keep must be among what it is
# taught. Or you take the update out again: that is the advantage of keeping it apart.
#
# ## Several tokens in one call
# For each token that it writes, the model reads all of its weights and multiplies them by one
# vector. Reading five tokens takes much less than five times as long: most of the time goes into
# moving the weights (lesson 12). So let something cheap guess the next tokens, a **draft**, and let
# the model read the whole draft in one call. That gives its probabilities at each place, and where
# the draft was right, tokens are gained. This is **speculative decoding** (Leviathan et al., 2023).
#
# Which tokens of the draft may stay? Only with the right rule does the text have the same
# distribution as if the model had drawn every token itself. Look at one place. The draft draws x
# with probability q(x), the model wants p(x).
#
# - Keep x with probability min(1, p(x) / q(x)). Then x comes out with probability
#   min(q(x), p(x)).
# - What p(x) still lacks is max(0, p(x) − q(x)). Summed over all x, this is exactly the probability
#   that a token is rejected. So after a rejection draw from what is lacking, divided by its sum.
#
# By hand, for three tokens:

# %%
p, q = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.7, 0.1])
kept = torch.minimum(p, q)
rest = (p - q).clamp(min=0)
print("kept", kept, " rejected", 1 - kept.sum())
print("then", rest / rest.sum(), " in all", kept + rest)

# %% [markdown]
# ### Exercise 21.5 · `accept`
# ●●● hard · 15 minutes · 3 points
#
# Graded in three parts: how many are kept (1), after a rejection (1), after a whole draft (1).
#
# - **How many are kept.** The model has read a draft of k tokens in one call. Row i of `p` holds
#   its probabilities at place i of the draft, row i of `q` those from which the draft's token i was
#   drawn. Token x at place i is kept if noise[i] < p[i, x] / q[i, x]. At the first token that is
#   not kept the draft ends.
# - **After a rejection.** The next token is drawn from what p[i] has more than q[i]: subtract, set
#   what is negative to 0, divide by the sum. Return these probabilities.
# - **After a whole draft.** If all tokens are kept, the last row of `p` says what comes after them.
#
# <details><summary>Hint 1 · the loop</summary>
#
# Go through the tokens of the draft one by one, and return at the first that is not kept.
# </details>
# <details><summary>Hint 2 · pseudocode</summary>
#
# ```
# for each place i of the draft, with its token x:
#     if noise[i] is not below p[i, x] / q[i, x]:
#         return i, and the part of p[i] above q[i], divided by its sum
# return k, and the last row of p
# ```
# </details>

# %% exercise="accept"
from attention.answers import accept

# %% check="accept" points=3
check.accept(accept)

# %% [markdown]
# <details><summary>The code that ran</summary>
#
# ```python
# text, past, calls = ids, None, 0
# while len(text) < len(ids) + n:
#     drafted, q = propose(text, k)
#     known = past[0][0].shape[2] if past else 0
#     scores, past = model(torch.cat([text[known:], drafted])[None], past)
#     p = probabilities(scores[0, -k - 1 :], temperature)  # (k + 1, vocab_size)
#     kept, after = accept(p, q, drafted, torch.rand(k, generator=generator))
#     text = torch.cat([text, drafted[:kept], after.multinomial(1, generator=generator)])
#     # The cache forgets what was not kept. The last token was drawn, and not yet read.
#     past = [tuple(each[:, :, : len(text) - 1] for each in pair) for pair in past]
#     calls += 1
# ```
# </details>
#
# With temperature 0, p is 1 for the best token and 0 for all others. Then a draft stays exactly as
# far as it agrees, and the text must be the one of `generate_with_cache`, token for token. The
# draft for the small writer counts which token followed which two in its novels:

# %% demo=true
from attention.experiments import speculative_decoding

_ = speculative_decoding.show_same_text(accept)

# %% [markdown]
# At temperature 1 only frequencies can show it.

# %% demo=true
_ = speculative_decoding.draw_frequencies(accept)

# %% [markdown]
# *The first two tokens after “I am”: how often each pair came in 1 000 runs, and its exact
# probability.* Below, all pairs together: the **total variation** is half the sum of the distances
# from the exact probabilities. With your rule it stays below the bound that plain sampling keeps 95
# times in 100. The wrong rule, which draws from p after a rejection, does not: what is already kept
# often enough gets a second chance.
#
# How many tokens does a call yield?

# %% demo=true
_ = speculative_decoding.draw_tokens_per_call()

# %% [markdown]
# *Tokens per call of the model against the length of the draft. Left: the small writer, with counts
# of what followed the last tokens; dots are seeds. Right: SmolLM2, whose draft copies what followed
# the last tokens where they stood before in the text.* The counts are right often enough for two to
# three tokens per call. Copying 8 tokens yields 4.7 per call where the answer repeats the question,
# and hardly more than one where it is new. A longer draft takes longer to read, and pays only if it
# is right.
#
# ## The first token
# A cache grows with the text. Lesson 20's window drops the oldest keys, but SmolLM2 was trained
# without a window. Where do its heads look?
#
# <details><summary>The code that ran</summary>
#
# ```python
# layers = weights_of(decoder, torch.tensor([ids]))
# on = [weights[0, :, EARLY:, :EARLY].flatten(0, 1).median(dim=0).values for weights in layers]
# ```
# </details>

# %% demo=true
from attention.experiments import long_texts

_ = long_texts.draw_first_token()

# %% [markdown]
# *Weight on the first token, by layer: medians over heads and the later queries of a text, and over
# three texts. Dotted: the most that any of the next 15 tokens gets. Grey: even weights.* From layer
# 13 of SmolLM2 on, a quarter to four fifths of the weight lie on the first token; even weights
# would give it 0.007. It does not matter which token it is: the texts were changed to begin with
# *the*, with a full stop or with `<|im_start|>`.
#
# The weights of a query sum to 1, even if a head does not find what it looks for. They have to go
# somewhere, and all queries see the first token. Xiao et al. (2024) call it an **attention sink**.
# The small writer has none.
#
# What happens when a window drops the sink?
#
# ### Exercise 21.6 · `keep_sinks`
# ●○○ easy · 8 minutes · 1 point
#
# Shorten a cache: of its P positions, the first `n_first` and the last `window` stay, in their
# order, in the keys and the values of each layer. Where the two overlap, a position stays once.
# Either number may be 0. (The keys are kept as they were before they were turned, and positions are
# counted from the first key that is left: so nothing else has to change.)
#
# <details><summary>Hint 1 · which positions</summary>
#
# Number them from 0 to P − 1. Which numbers are kept? A mask (P,) can index the third axis.
# </details>

# %% exercise="keep_sinks"
from attention.answers import keep_sinks

# %% check="keep_sinks" points=1
check.keep_sinks(keep_sinks)

# %% [markdown]
# SmolLM2 reads the beginning of a novel, 1 536 tokens in pieces of 16. After each piece the cache
# is shortened.
#
# <details><summary>The code that ran</summary>
#
# ```python
# past, found = None, []
# for read_now, after in zip(ids[:-1].split(CHUNK), ids[1:].split(CHUNK), strict=True):
#     scores, past = model(read_now[None], past)
#     found.append(-torch.log_softmax(scores[0], dim=1).gather(1, after[:, None])[:, 0])
#     past = cut(past)
# ```
# </details>

# %% demo=true
_ = long_texts.draw_streams()

# %% [markdown]
# *Nats per token along three texts (medians), by what the cache keeps. The grey line is where it is
# cut for the first time.* With the last 256 positions alone SmolLM2 needs 0.7 nats per token more
# than with all. With 255 and the first one it needs 0.1 more. Three more from the beginning gain
# nothing. Is it only that any four early positions help? In place of the first four, four others
# were kept: that is as bad as none. So one token out of 1 536 makes the difference.
#
# Now your `keep_sinks` cuts the cache of the small writer, which has no sink:

# %% demo=true
_ = long_texts.show_stream(keep_sinks)

# %% [markdown]
# It makes no difference which early positions stay. But keeping all of them is worse than keeping
# the last 128. Why, the next section shows.
#
# ## ★ Longer than in training
# Lesson 20 showed that rotary decoders read badly beyond the lengths of their training: the pairs
# that turn slowly come to angles that they never had. Let these turn more slowly, and leave the
# fast ones, which tell neighbours apart, as they are. One number, the base, does both.
#
# ### Exercise 21.7 · `stretched_base` ★
# ●●○ medium · 8 minutes · 1 point
#
# Pair i of a head's features turns by position / base^(2i / d_head), where i runs from 0 to d_head
# / 2 − 1. Find the base with which the slowest pair turns `factor` times as slowly as before.
#
# <details><summary>Hint 1 · the slowest pair</summary>
#
# It is the last, with 2i = d_head − 2. Write down its speed with the old base and with the new one.
# </details>
# <details><summary>Hint 2 · the equation</summary>
#
# new^((d_head − 2) / d_head) = factor · base^((d_head − 2) / d_head). Solve it for `new`.
# </details>

# %% exercise="stretched_base"
from attention.answers import stretched_base

# %% check="stretched_base" points=1
check.stretched_base(stretched_base)

# %% [markdown]
# The small writer learned from passages of 128 tokens. Here it reads 512.
#
# <details><summary>The code that ran</summary>
#
# ```python
# model = small_writer.load(ModernDecoder)
# for layer in model.layers:
#     layer.attention.base, layer.attention.window = base, window
# ```
# </details>

# %% demo=true
_ = long_texts.draw_stretched(stretched_base)

# %% [markdown]
# *Bits per token at three stretches of a text, by one model and without any drawing.* Stretched by
# 4, the model reads places 129 to 256 better than with its own base, and loses nothing before. At
# 257 to 512 it is no better. Stretched by 16, it is better there and slightly worse in front.
# Turned the other way, by 1/4, it gets worse everywhere.
#
# But look at the dashed lines. With a window of 128 the same model never sees further back than in
# its training, and reads the late places best of all. So a stretched base did not make this model
# *use* what stands far back; it breaks less. Published models are trained further on long texts
# after their base was changed. SmolLM2's base is 100 000, ten times that of lesson 08.
#
# ## What it cannot do
# The model has 134.5 million numbers, about a thousandth of a large one of today. Ask it something
# that it cannot know, and it answers all the same:

# %% demo=true
for question in (
    "How many letters r are in the word strawberry?",
    "Who won the football world cup in 2030?",
):
    print(question, "→", goes_on(smollm2.prompt([("user", question)], system=""), 40))

# %% [markdown]
# It reads tokens, not letters (lesson 08), and its texts end years before 2030. Nothing in its loss
# asks whether a text is true: only whether the next token is the one that stood there. Larger
# models know more and fail less often, but they are trained with the same loss.
#
# - The experiments with SmolLM2 are of one published model. How much an answer depends on the form
#   of a question, and how strong a sink is, differs from model to model.
# - Rounding to the nearest value is the simplest way to few bits. Better ones choose the rounding
#   by what it does to the outputs of a layer (Frantar et al., 2023).
# - Drafts save calls where one text is written at a time. A GPU that writes hundreds of texts at
#   once has little left to save.
#
# ## Something of your own
# Teach SmolLM2 something of yours. A text file holds a question and an answer in each line, with a
# tab between them (in a clone of the course):
#
# ```sh
# python -m attention.teach pairs.txt --to taught.safetensors
# python -m attention.chat --lora taught.safetensors
# ```
#
# Keep some questions out, and say how many of them it answers, before and after. What else did it
# forget?

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# A published model fits into 98 MB because each weight is one of 16 values of its block. It answers
# because an answer is the likely continuation of a conversation, written in the marks that it
# learned. LoRA taught it something new by an update of low rank. A draft saves calls and changes no
# distribution: what it proposes too often is rejected, and what it lacks is drawn then. The first
# token carries weight that has to go somewhere. And a longer text needs slower angles, or a window.
#
# ## The whole course in a few sentences
# You began with a weighted average of examples, whose weights came from a similarity. Query, key
# and value became three learned views of a token, scores were divided by √d and masked, and
# several heads did this side by side: that is attention. Positions, residuals and norms turned it
# into a deep model. Training and decoding turned this into a translator, a language model and a
# classifier of images. Your layers ran two models that others had trained, a BERT and one that
# answers, and you taught the second something new.
#
# **Where to go next.** Train a model on your own sentences, with `python -m attention.train`.
# Read a paper from the lists of this course beside your code. Write the tiles of lesson 18 as one
# kernel, in Triton on a GPU. And when you read of a result, ask: compared with what, and over how
# many seeds?
#
# ## Open questions
# No points, no check.
# 1. A block of Q4_1 holds 32 weights. What would blocks of 16 and of 256 weights cost, and what
#    would they gain?
# 2. With `B` random and `A` zero, nothing would change at first, either. What if both were zero?
# 3. A draft that is always right is kept as a whole. Why does the model still have to read it?

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. Scale and smallest value take 32 bits per block: 2 bits per number with 16, 1/8 with 256. In a
#    larger block the smallest and the largest lie further apart, so the rounding errors are larger.
# 2. The gradient of A contains B as a factor, that of B contains A. Both would be zero, and
#    nothing would ever change.
# 3. Only its own probabilities say whether the draft is right.
#
# </details>

# %% [markdown]
# ## References
# - E. Frantar et al. (2023). *GPTQ: accurate post-training quantization for generative pre-trained
#   transformers.* [arXiv:2210.17323](https://arxiv.org/abs/2210.17323)
# - L. Ouyang et al. (2022). *Training language models to follow instructions with human feedback.*
#   [arXiv:2203.02155](https://arxiv.org/abs/2203.02155)
# - S. Min et al. (2022). *Rethinking the role of demonstrations: what makes in-context learning
#   work?* [arXiv:2202.12837](https://arxiv.org/abs/2202.12837)
# - E. Hu et al. (2022). *LoRA: low-rank adaptation of large language models.*
#   [arXiv:2106.09685](https://arxiv.org/abs/2106.09685)
# - Y. Leviathan, M. Kalman, Y. Matias (2023). *Fast inference from Transformers via speculative
#   decoding.* [arXiv:2211.17192](https://arxiv.org/abs/2211.17192)
# - G. Xiao et al. (2024). *Efficient streaming language models with attention sinks.*
#   [arXiv:2309.17453](https://arxiv.org/abs/2309.17453)
# - B. Peng et al. (2024). *YaRN: efficient context window extension of large language models.*
#   [arXiv:2309.00071](https://arxiv.org/abs/2309.00071)
# - L. B. Allal et al. (2025). *SmolLM2: when Smol goes big.*
#   [arXiv:2502.02737](https://arxiv.org/abs/2502.02737)
