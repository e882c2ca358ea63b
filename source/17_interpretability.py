# %% [markdown]
# # 17 · Does attention explain?
#
# An attention map looks like an answer: the model wrote *this* because it looked *there*. Here you
# test that claim on a trained translator.
#
# **After this lesson** you can
# - count how often a head looks where a **role** would look, and compare with chance,
# - measure how much a token matters by **leaving it out**,
# - see which letters depend on one hidden vector (**activation patching**),
# - find different weights with the same output (the **null space** of attention),
# - rank heads by **importance**, and say where the ranking misleads,
# - find **induction heads**, which continue what repeats,
# - ★ test whether hidden vectors still belong to their tokens.
#
# **Time** 100 minutes, ★ 25 more · **Points** 13, of which 2 are for exercises with a star ·
# **GPU** not needed · **You need** lessons 05 to 10

# %%
import torch

from attention.experiments import interpretability as experiments
from attention.train import shipped
from autograder import check

torch.set_num_threads(1)  # as fast for small matrices, and much faster beside other programs

# %% [markdown]
# ## A map that looks like an answer
# This translator was trained by `python -m attention.train numbers`: it reads a number in English
# words and writes it in German letters. Encoder and decoder have two layers each, and each of the
# six attentions has four heads. We look at the first cross-attention while it writes 231,
# *zweihunderteinunddreißig*. Then we shuffle: the weights of every cross-attention fall on the
# wrong words, and the model predicts each letter again, given the true letters before it.

# %% demo=true
model, corpus = shipped.trained("numbers")
model = model.double().requires_grad_(False)  # float64, so that small effects can be seen
first_map = experiments.first_map(model, corpus)

# %% [markdown]
# *Weights of the first cross-attention, the mean of its four heads: a row for each letter to be
# written, a column for each word.* The map looks like an explanation: *zwe* looks at *two*,
# *hundert* at *hundred*. But many letters in the second line are right, although the weights went
# to the wrong words. How many are right over 200 sentences?
#
# <details><summary>The code that ran</summary>
#
# ```python
# with rearranged_attention.rearranged(model, batch.source, name, seed):
#     right = right_letters(model, batch)
# ```
# </details>

# %% demo=true
_ = experiments.shuffled_weights()

# %% [markdown]
# *Share that is right: with the weights as they are, shuffled three times, and all equal
# (“uniform”). “First letters” begin a German number word, “letters inside” are all others.* With
# the weights on wrong words, no number is right, and only one first letter in ten. With equal
# weights it is four in ten. But inside the words nearly nine letters in ten are still right: after
# *dreiß* comes *ig*, whatever the source says. Yet the map shows a lot of weight on *thirty* there.
#
# ## Five meanings of “explains”
# “Attention explains” can mean five things. You will measure each of them, and at the end look at
# heads that work only together:
# - a head looks at some place (“What do the heads look at?”),
# - the answer depends on a token (“Does it matter?”),
# - it depends on one vector (“What if another word stood there?”),
# - no other weights would do (“Could the weights be different?”),
# - a head is needed (“Which heads are needed?”).
#
# ## What do the heads look at?
# Choose a sentence, an attention and a head:

# %% demo=true
experiments.explore_maps(model, corpus)

# %% [markdown]
# Layers and heads count from 0, as in the code. Some heads seem to have a favourite place, such as
# the letter just read. But the eye finds patterns in anything. So we count: how often is a head's
# largest weight where a head with a certain *role* would look, such as at the token before? The
# control is chance, a place drawn at random.

# %% demo=true
pairs, batch = experiments.held_out(corpus)
experiments.draw_roles(model, pairs, batch)

# %% [markdown]
# *Over 40 held-out numbers. Each dot is a head; on the right each head is its number.* Voita et al.
# (2019) call a head *positional* if nine queries in ten have their largest weight on the same
# neighbour. They found such heads. This model has none: no head comes near the dashed line at 0.9.
# The clear role is *alignment*. At the first letter of a German word, three of the four heads in
# each layer look at its English word; at other letters they do so less. Head 3 does the reverse.
#
# ## Does it matter?
# A head looks at a word. Would the answer change without that word?
#
# ### Exercise 17.1 · `LeaveOneOut`
# ●●○ medium · 15 minutes · 2 points
#
# Write `forward`: how much log-probability does each target letter lose if one source token is
# hidden? It takes `source` (B, T_k) and `target` (B, T_q) and returns (B, T_q, T_k): entry (t, j)
# is the log-probability of target token t, less what it is without source token j. `log_p`, in the
# base class below, takes a mask of the source and hides a token from encoder and decoder alike.
# Unlike cutting the token out, this leaves all other tokens at their positions.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Call `log_p` once with the mask as it is. Then call it once for each source token, with the entry
# of this token turned off.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `masks_from_tokens` gives a source mask of (B, 1, T_k), and `log_p` gives (B, T_q). Stack the T_k
# differences along a new last axis.
# </details>
# <details><summary>Hint 3 · later columns lack more and more tokens</summary>
#
# You change the same mask in every round, so what was turned off stays off.
# </details>

# %%
from torch import nn

from attention.multi_head_attention import MultiHeadAttention
from attention.provided import demand
from attention.sequence_to_sequence import shift_right
from attention.transformer import Transformer, Translator, masks_from_tokens

# %% given="Explained"
from attention.interpretability import Explained

# %% exercise="LeaveOneOut"
from attention.interpretability import LeaveOneOut

# %% check="LeaveOneOut" points=2
check.LeaveOneOut(LeaveOneOut)

# %% [markdown]
# ### Predict first
# Hide *thirty* in 231. How many letters will lose more than one nat, which leaves them less than
# 37 % of their probability? All seven of *dreißig*? Any outside it?

# %%
from attention.provided.predictions import compare

prediction = None  # a number of letters; None skips this

# %% demo=true
one = experiments.numbers(corpus, 231)
lost = LeaveOneOut(model)(one.source, one.target)[0]  # (T_q, T_k)
mattered = experiments.attention_and_losses(first_map, lost)
compare(prediction, mattered, "letters that lose more than one nat without thirty")

# %% [markdown]
# *Left: the map from above. Right: how much log-probability each letter loses without each word, in
# nats; this scale ends at the largest loss.* Without *thirty*, three letters of *dreißig* lose
# much: d, r and ß. So does the *u* of *und*, which is written only if tens follow. The two pictures
# agree mostly where the model has a choice to make: at the start of a word, or where a word could
# continue in several ways. At most other letters hardly anything is lost, yet the weights of the
# map must go somewhere. An exception is the *n* of *ein*: without *one*, the letters *ei* that it
# is given no longer fit, and it goes on with *ß*, as in *dreißig*.
#
# Do they agree over 200 held-out sentences? For each letter we rank the words by how much its
# log-probability changes without them, and by a measure that claims to explain it: the mean
# cross-attention weight, the length of the *gradient* of log p with respect to a word's vector, or
# *gradient · input*, the size of its product with that vector. **Kendall's τ** compares two orders:
# 1 means the same, 0 no relation, −1 the reverse.
#
# <details><summary>The code that ran</summary>
#
# ```python
# x = model.embed(batch.source, model.source_embedding).detach().requires_grad_()
# memory = model.encoder(x, seen)
# logits = model.decode(shift_right(batch.target), memory, read_mask, seen)
# log_p = logits.log_softmax(-1).gather(2, batch.target.unsqueeze(2)).squeeze(2)
# products, norms = [], []
# for one in log_p.unbind(dim=1):  # a sentence depends on itself alone
#     (gradient,) = torch.autograd.grad(one.sum(), x, retain_graph=True)
#     products.append((gradient * x).sum(-1).abs())
#     norms.append(gradient.norm(dim=-1))
# ```
# </details>

# %% demo=true
_ = experiments.explanations()

# %% [markdown]
# *Means over 200 sentences, with 95 % bootstrap intervals (lesson 14).* Attention agrees with
# leave-one-out better than gradient · input does, and less well than the length of the gradient.
# Its τ of 0.585 means: of two words, the one with more attention also matters more in 79 of 100
# cases.
#
# The comparison is that of **Jain and Wallace (2019)**. In recurrent text classifiers attention
# agreed only weakly with both measures, and very different weights gave nearly the same output:
# *Attention is not explanation*. **Wiegreffe and Pinter (2019)** answered that no *model* with such
# weights had been shown: *Attention is not not explanation*. They ask for controls such as a model
# *trained* with equal weights. Our shuffle is a weaker control: it shows only that this trained
# model depends on its weights.
#
# ## What if another word stood there?
# In training no word was ever hidden, so leaving one out puts the model into a situation that it
# has never met. The next test gives it only vectors of words that it knows. The English names of
# 931 and 139 contain the same words in another order. Let the encoder read both, and give the
# decoder the vectors of 931, except for one that comes from 139. Which letters change? This is
# **activation patching**, or an *interchange intervention* (Geiger et al., 2021).
#
# ### Exercise 17.2 · `ActivationPatching`
# ●●○ medium · 12 minutes · 2 points
#
# Write `forward`: what would the decoder write at each place of `target` (B, T_q) if some of the
# encoder's vectors came from another sentence? Return the probabilities of the whole vocabulary,
# (B, T_q, target_size). `source` and `other` are ids (B, T_k). Where `places`, a bool tensor (B,
# T_k), is True, the decoder gets the vector of `other`. Exchange what the encoder returns, not what
# it reads. The other sentence goes through the encoder alone, with a mask of its own; what the
# decoder may look at stays as it was.
#
# <details><summary>Hint 1 · the idea</summary>
#
# `self.model` is the Transformer of lesson 10. What passes between its `encode` and its `decode`?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Both memories are (B, T_k, d_model); `places`, (B, T_k), needs one more axis to choose between
# them. `decode` takes `shift_right(target)`, a memory, the target's mask and the source's, and
# returns scores; `masks_from_tokens` makes the masks.
# </details>
# <details><summary>Hint 3 · each letter is nearly certain, whatever you replace</summary>
#
# You gave the decoder the letter that it should write. It may only read the letters before.
# </details>

# %%
from attention.provided.data.tokens import PAD

# %% exercise="ActivationPatching"
from attention.interpretability import ActivationPatching

# %% check="ActivationPatching" points=2
check.ActivationPatching(ActivationPatching)

# %% [markdown]
# ### Predict first
# Where 931 has *one*, the decoder gets the vector of *nine* from 139. Which number will it write?

# %%
prediction = None  # a number; None skips this

# %% demo=true
written = experiments.patch_words(ActivationPatching(model), corpus, 931, 139)
compare(prediction, written["one"], "the number that is written")

# %% [markdown]
# *How much of its probability each letter of 931 loses if the vector of one word comes from 139.
# Printed: what is then written.* With *nine* in place of *one* the model writes 939, with *one* in
# place of *nine* 131, and with both 139. The **control** is *hundred* and *thirty*: they stand in
# both sentences, with different neighbours, and exchanging their vectors changes nothing. Does this
# hold for other numbers?

# %% demo=true
_ = experiments.patch_many(ActivationPatching(model), corpus)

# %% [markdown]
# *100 pairs of held-out numbers with the same kinds of words; one vector is replaced at a time.*
# Where the two numbers differ in a word, the model always writes the first number with this one
# word taken from the other. Where they have the same word, and at EOS, nothing ever changes.
#
# Does the vector hold only its word? All vectors so far came from the *same* place, so this test
# cannot say. Now take the vectors of 931 alone, and move them: what is written if the vector of
# *nine* also stands in the place of *one*? Is it 939 again?
#
# <details><summary>The code that ran</summary>
#
# ```python
# mask, causal = masks_from_tokens(source, shift_right(target))
# memory = model.encode(source, mask)[:, list(rows)]
# found: Tensor = model.decode(shift_right(target), memory, causal, mask)
# ```
# </details>

# %% demo=true
_ = experiments.move_vectors(model, corpus)

# %% [markdown]
# *First four lines: 931, with its vectors in other places. Last three: all numbers with these kinds
# of words and two different digits.* No: with *nine* in both places the model writes 930, and the
# last digit is missing. With *one* in both, the first digit is missing, and nonsense follows. So a
# vector holds its word **and something that depends on its place**, if only roughly: in a recorded
# trial, vectors from the place before served 400 times of 400. Where the vector stands means
# nothing to the decoder: a weighted sum does not depend on the order of its terms.
#
# ## Could the weights be different?
# If the weights explain an output, no other weights should give it. Three tokens have the values 1,
# 2 and 3, one feature each. Here are three rows of weights, and what they give:

# %%
for weights in ([0.5, 0.0, 0.5], [0.25, 0.5, 0.25], [0.0, 1.0, 0.0]):
    print(weights, "→", sum(w * v for w, v in zip(weights, [1.0, 2.0, 3.0], strict=True)))

# %% [markdown]
# Each row differs from the one before by (−0.25, 0.5, −0.25). These numbers sum to 0, and so do
# their products with the values. In a head with T keys, weights *A* and values *V*,
#
# $$(A + U)\,V = A\,V \quad\text{whenever}\quad U\,V = 0$$
#
# A row of *U* is T numbers that meet d_head + 1 linear conditions: none of the d_head features of
# the output changes, and the numbers sum to 0. Each condition that does not follow from the others
# takes away one direction of change. The directions that remain are the **null space**; its
# dimension is T less the rank of the conditions.

# %%
from attention.provided.measuring.other_weights import TOLERANCE, null_space

# %% given="null_space_dimension"
from attention.interpretability import null_space_dimension

# %% [markdown]
# ### Predict first
# Each head has 32 features. The longest number has 9 English words and 64 German letters. Which of
# the three kinds of attention has a null space for it?

# %%
prediction = None  # "encoder", "decoder" or "cross"; None skips this

# %% demo=true
free = experiments.null_spaces(null_space_dimension, model, corpus)
compare(prediction, free, "attention with a null space")

# %% [markdown]
# The 32 features and the sum make 33 conditions, so there must be a null space from T = 34 on. The
# last row of the decoder's self-attention has 65 − 33 = 32 free directions, so it fails the test.
# Cross-attention, whose map opened this lesson, passes it: given these values, no other weights
# give exactly its output.
#
# ### Exercise 17.3 · `perturb_attention`
# ●●● hard · 20 minutes · 3 points
#
# Graded in three parts: the part in the null space (1), the step (1), where nothing can
# change (1).
#
# Above, one can go from (0.5, 0, 0.5) to (0, 1, 0), and no farther, since a weight may not be
# negative. Do this with any row of `weights` (T,), for `values` (T, d). Its sum and its output
# `weights @ values` must stay the same. Take the part of `direction` (T,) that lies in the null
# space of the values. Go along this part, and only until the first weight is 0. If nothing can
# change, return the weights as they are. `null_space(values)` is given: it returns n orthonormal
# columns, (T, n), that span the null space.
#
# <details><summary>Hint 1 · the idea</summary>
#
# How far does the direction go along each of the columns? If a step changes a weight w by c < 0,
# after how many such steps is it 0?
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Turn the direction, (T,), into n lengths along the columns, and these back into a change, (T,).
# Each weight that falls allows a number of steps; the smallest of these numbers counts.
# </details>
# <details><summary>Hint 3 · “RuntimeError: min(): … numel() == 0”, or NaN</summary>
#
# Without a null space nothing changes, nor with a direction of 0, so nothing limits the step. What
# should be returned then?
# </details>

# %% exercise="perturb_attention"
from attention.interpretability import perturb_attention

# %% check="perturb_attention" points=3
check.perturb_attention(perturb_attention)

# %% [markdown]
# How far can the weights go? Compare a random direction with a search, by linear programming, for
# the farthest row. Distance is the share of the weight that moves elsewhere (*total variation*).

# %% demo=true
torch.manual_seed(0)
weights, values = experiments.last_row(model, corpus)  # (T,), (T, d_head)
other = perturb_attention(weights, values, torch.randn(len(weights)).double())
experiments.draw_rows(weights, values, other)
_ = experiments.movable_weight()

# %% [markdown]
# *Above: the row of the model and, with the same output, the farthest row that the search found.
# Below: how much weight can be moved in such rows of 8 heads for 25 long numbers, by the best of 20
# random directions and by the search.* A random direction does not get far, because some small
# weight soon reaches 0. The search moves more than a quarter of the weight on average. The farthest
# row holds zeros, which no softmax gives; a row half-way there holds none. Whether this head's
# queries and keys could produce that one is another question.
#
# ## Which heads are needed?
# The translator has 24 heads. Which of them can go? There are too many sets of heads to try them
# all. But lesson 07 gave every head a gate: 1 keeps the head, 0 removes it. One backward pass gives
# the derivatives of the loss with respect to all gates. Do they predict what happens at 0?
#
# ### Exercise 17.4 · `HeadImportance`
# ●●○ medium · 12 minutes · 2 points
#
# Write `forward`: how strongly does the loss react to each head's gate? The loss of a sentence is
# the sum of −log p over its real tokens. Differentiate it with respect to gates of 1: take the size
# of the derivative for each sentence, then the mean over sentences. `forward` takes `source` (B,
# T_k) and `target` (B, T_q) and returns a dict: for the name of each attention, the importance of
# its heads, (H,). `gates`, of the base class, makes a gate for each sentence and head.
# `watch_attention` puts gates into a model; this removes one head inside the `with`:
#
# ```python
# with watch_attention(model, {"encoder.layers.0.attention": torch.tensor([1.0, 1.0, 0.0, 1.0])}):
#     logits = model(source, target)
# ```
#
# <details><summary>Hint 1 · the idea</summary>
#
# With the gates in place, turn log p into a loss and take its gradients for all gates at once. Each
# sentence has its own gates, so one sum over all sentences is enough.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# `log_p` returns (B, T_q), with padding in it that must not count. The gradient of each attention's
# gates is (B, H), and its entry of the result is (H,).
# </details>
# <details><summary>Hint 3 · “RuntimeError: … appears to not have been used in the graph”</summary>
#
# The gates act only inside the `with`, and only if you pass them to it.
# </details>

# %%
from attention.provided.models.attention_weights import watch_attention

# %% exercise="HeadImportance"
from attention.interpretability import HeadImportance

# %% check="HeadImportance" points=2
check.HeadImportance(HeadImportance)

# %% [markdown]
# Now remove heads one after another: the least important first; at random (five draws); or
# *greedy*, where each step removes the head that costs least. Importance and greedy search get
# their order from other sentences.
#
# <details><summary>The code that ran</summary>
#
# ```python
# order, left = [], list(heads)
# while left:
#     costs = {one: exact_without(model, batch, [*order, one]) for one in left}
#     best = max(left, key=lambda one: costs[one])
#     order.append(best)
#     left.remove(best)
# ```
# </details>
#
# ### Predict first
# How many of the encoder's eight heads can be removed, least important first, while 99 % of the
# numbers stay right?

# %%
prediction = None  # heads of the encoder that can be removed, from 0 to 8; None skips this

# %% demo=true
importance = HeadImportance(model)(batch.source, batch.target)
for name, sizes in importance.items():
    print(f"{name:<34}", *(f"{size:.3f}" for size in sizes.tolist()))
compare(prediction, experiments.pruned_heads(), "heads of the encoder that can be removed")

# %% [markdown]
# *Share of 500 held-out numbers of which every letter is right, as heads are removed. A curve ends
# where nothing is right.* By importance, we can remove all eight heads of the encoder, one of the
# cross-attention and none of the decoder's self-attention. Without the encoder's heads, a vector
# can hold only its word and its place: for this model that is enough. But within each of the three
# groups a random order does as well. Only among all 24 does importance win, with 8 against 1 to 3:
# it tells the encoder's heads from the decoder's, but not one decoder head from another.
#
# In this model's decoder, importance is a trap: removing the head of the self-attention that it
# ranks lowest costs most of the numbers. Greedy search tries before it removes, and avoids this.
# With all 24 heads, importance begins with the encoder's eight; the ninth is that decoder head, and
# accuracy collapses.
#
# ### Where does the derivative go wrong?
# Turn one gate slowly from 1 to 0 and watch the loss: for that decoder head, and for the one that
# greedy search removes first.

# %% demo=true
experiments.turn_gates(model, batch, importance)

# %% [markdown]
# *Loss per number as one gate is turned; with all heads it is not 0, since label smoothing (lesson
# 11) keeps the model from being certain. The importance is the mean **size** of the slopes of
# single numbers; the slope of the curve is their mean with sign.* At 1, where the derivative is
# taken, both curves are flat. The head that seems to matter less costs far more at 0. A derivative
# describes a **small** change, and going to 0 is a large one.
#
# By this importance, **Michel et al. (2019)** removed about a fifth of the heads of a translation
# model without a noticeable loss. **Voita et al. (2019)** started from a trained model and trained
# gates together with it: encoder heads went first.
#
# ## Two layers do what one cannot
# Some heads make sense only together. In the next task each row repeats a stretch of random tokens;
# the length of the stretch, the period, is 4 to 14 and differs from row to row. To continue such a
# row, a model must find where the last token stood before and copy what came next. One attention
# layer cannot look this up: a position knows only its own token and place. With two layers, the
# first can tell each position which token stood before it, and the second can look for the position
# whose predecessor is the current token. A head that does so is called an **induction head**
# (Elhage et al., 2021; Olsson et al., 2022). We train a model of two attention layers on this task,
# which takes about fifteen seconds, and look for such heads.
#
# <details><summary>The code that ran</summary>
#
# ```python
# model = AttentionOnly(n_layers, d_model, MultiHeadAttention)
# optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
# schedule = torch.optim.lr_scheduler.LambdaLR(
#     optimizer, lambda step: min(1, (step + 1) / 50) * (1 - step / STEPS)
# )
#
# def loss() -> Tensor:
#     ids, period = repeated(BATCH, generator)
#     logits, _ = model(ids[:, :-1])
#     repeats = torch.arange(1, T) > period  # (B, 31): the token stood there a period ago
#     return F.cross_entropy(logits[repeats], ids[:, 1:][repeats])
#
# with one_thread():
#     for _ in take_steps((loss() for _ in range(fewer(STEPS))), optimizer):
#         schedule.step()
# ```
# </details>

# %% demo=true
from attention.experiments import induction

repeater = induction.trained(2, 0, MultiHeadAttention)
repeating, by_chance = induction.fresh()[0], induction.chance_rows()  # (500, 32) each
for row in (repeating[0], by_chance[0]):
    print(*row.tolist())

# %% [markdown]
# *A row that repeats, and one of random tokens, in which a token returns only by chance.*
#
# ### Exercise 17.5 · `induction_score`
# ●●○ medium · 15 minutes · 2 points
#
# How much of its weight does each head put where an induction head would look? From `weights` (B,
# H, T, T) and `tokens` (B, T), compute a score for each head, (H,). Take the tokens *a b c a*: *a*
# was already at position 0, so at the last *a* an induction head looks at position 1. In *a b a c
# a* there are two such positions, 1 and 3: add up the weights on both. Take the mean over all
# queries whose token occurred before, in all rows.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Compare every token with every token before it. The weight that counts is that of the key one
# position further.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Comparing (B, T, 1) with (B, 1, T) gives (B, T, T), of which `tril` keeps what lies before the
# query. Add an axis for the heads. If you leave out the first key, the last axis of the weights
# begins one position further.
# </details>
# <details><summary>Hint 3 · the scores are too small</summary>
#
# Which queries do you divide by? A token that is new has no earlier occurrence, and no token is
# an earlier occurrence of itself.
# </details>

# %% exercise="induction_score"
from attention.interpretability import induction_score

# %% check="induction_score" points=2
check.induction_score(induction_score)

# %% [markdown]
# ### Predict first
# The model has four heads in each of its two layers. How many of the eight put more than half of
# their weight where an induction head would look?

# %%
prediction = None  # a number of heads, from 0 to 8; None skips this

# %% demo=true
scores = {}
for name, ids in {"repeating": repeating, "random": by_chance}.items():
    weights = [*repeater(ids)[1], induction.equal_weights()]  # (500, H, 32, 32) each
    scores[name] = [induction_score(one, ids) for one in weights]
    induction.print_scores(name, scores[name])
compare(prediction, int((torch.cat(scores["repeating"]) > 0.5).sum()), "induction heads")

# %% [markdown]
# All four heads of layer 1 are induction heads. Those of layer 0 score no more than a head with
# equal weights, the first **control**. The second control is the random rows. No stretch repeats
# there; a token returns only by chance, at any distance. Even so the heads of layer 1 put 0.50 to
# 0.59 of their weight right after its earlier occurrence; equal weights put 0.08 there. So these
# heads match tokens; they do not count places. Are they needed? Remove all heads of one layer, or
# one head at a time:

# %% demo=true
every, none = torch.ones(4), torch.zeros(4)
print("from a fixed distance", induction.copied_back())
print("all heads", induction.continued(repeater))
print("without layer 0", induction.continued(repeater, [none, every]))
print("without layer 1", induction.continued(repeater, [every, none]))
for head, gates in enumerate(1 - torch.eye(4)):
    print(f"without head {head} of layer 1", induction.continued(repeater, [every, gates]))

# %% [markdown]
# *Share of the repeated tokens that are continued correctly. Guessing gives 0.03. The first line
# copies from a fixed distance: for each place in the row, the one that fits most often in 4 000
# other rows.* Without layer 1 the model hardly does better than guessing. Without layer 0 it does
# worse than a fixed distance: then the induction heads are not told which token stood before a
# position. But no *single* head of layer 1 is needed, since the three others suffice. Leaving
# out one head at a time would have called all four unimportant.
#
# Where are the 5 % that even the whole model gets wrong? Does it depend on the seed? And could a
# single layer do it, too?

# %% demo=true
axes = induction.induction_heads()

# %% [markdown]
# *Where one head of each layer looks in a row that repeats. Printed, for three seeds: the share of
# repeated tokens that are continued correctly, all together, after a token with one successor so
# far, and after one with several.* The first head looks at the token before (blurred late in the
# row), the second right after earlier occurrences of its token. Two layers continue 95 % of the
# tokens, and *all* that follow a token with one successor. All errors are made where a stretch
# holds a token twice, as the one in the map holds 25, followed by 24 and by 21: one token back does
# not tell which is next. One layer continues a third, hardly more than a fixed distance does (24
# places back fits periods of 4, 6, 8 and 12). A wider one, with more parameters than the two have
# together, gets little further.
#
# ## Limits
# - Everything about translation was measured on one small model and one task.
# - If either of two words would do, leaving out one at a time makes both look unimportant. Patching
#   cannot test what the two vectors have in common, such as their place here.
# - The null space is that of one head, while all others stay as they are.
#
# ## Something of your own
# Choose two numbers, and predict what the translator will write when a word's vector comes from the
# other number. Let `experiments.patch_words` draw it. Can you find a pair for which you are wrong?
# Both need equally many English words, of any kind: try 410 and 7 002. Show the picture and explain
# it.

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# Attention weights say where a head looks. That is not yet an explanation: many letters do not
# depend on them, and with more tokens than features other weights give the same output (not in this
# model's cross-attention, which sees ten words at most). To see whether a letter depends on
# something, change it, and beside it change something that should not matter. And some heads make
# sense only together: induction heads need a layer before them that tells each position what stood
# before it.
#
# **Next** [18 · Where does the quadratic
# go?](../18_efficient_attention/18_efficient_attention.ipynb) You will compute the same contexts
# with less memory, or others in less time.
#
# ## Open questions
# No points, no check.
# 1. Is τ higher if only the first letters of words count? (`experiments.aligned_role` marks them;
#    `agreement` in `attention.provided.measuring.rank_agreement` skips rows of 0 keys.)
# 2. How far does `perturb_attention` get from *equal* weights, with the same values, and why?

# %% [markdown] answer=true
# <details><summary>Answers</summary>
#
# 1. A little: for attention 0.604 (95 % interval 0.591 to 0.617) in place of 0.585 (0.578 to
#    0.592), for gradient · input 0.547 in place of 0.471, and for the length of the gradient 0.680
#    in place of 0.639, over the 200 sentences of the lesson.
# 2. In the 200 rows of the histogram, the best of 20 random directions moves 0.23 of the weight on
#    average, in place of 0.025. The step ends where the first weight is 0. A row of the model has
#    many weights near 0, and a row of equal weights has none.
#
# </details>

# %% [markdown]
# ## ★ Is it still that word?
# The columns of a map are labelled with words. But what layer 1 looks at are hidden vectors, into
# which layer 0 has mixed something of every word. Do they still belong to their words?
#
# A first measure: which input of its sentence is nearest to a hidden vector, by angle or by
# distance? Is it its own? Brunner et al. (2020) call this **token identifiability**.

# %%
from torch.nn import functional as F

# %% given="token_identifiability"
from attention.interpretability import token_identifiability

# %% [markdown]
# ### Predict first
# After two trained layers, what share of the hidden vectors is nearest to its own token? And in a
# model that was never trained?

# %%
prediction = None  # the share in the trained model, from 0 to 1; None skips this

# %% demo=true
own = experiments.nearest_inputs(token_identifiability, model, batch)
compare(prediction, own, "trained model: nearest to its own token")

# %% [markdown]
# *Share of vectors that are nearest to their own token, over 200 sentences, with three untrained
# models beside; last, your batch of 40.* The share is 1, but *also in the untrained models*: the
# residual connection carries the input past every layer. So this measure says nothing about what
# was learned. What the layers have added does (“the change alone”): there the trained model stands
# far above the control.
#
# A vector can also hold its token where no distance shows it. A **linear probe** (Alain and Bengio,
# 2016) asks whether a linear classifier, trained on 400 other sentences, can read it.
#
# <details><summary>The code that ran</summary>
#
# ```python
# x, y = _examples(learn[layer], answers(train.source), train.source)
# probe = make_pipeline(
#     StandardScaler(), LogisticRegression(C=0.1, max_iter=2000)
# ).fit(x, y)
# x, y = _examples(ask[layer], answers(test.source), test.source)
# rows[f"{question}, {layer}"] = round(probe.score(x, y), 4)
# ```
# </details>

# %% demo=true
experiments.probes()

# %% [markdown]
# *Share of held-out tokens for which the probe is right, by layer; “norm” is the normalization at
# the encoder's end.* The token itself can be read everywhere, with or without training. The input
# even says something about the word *before*: before *hundred* there is always a digit. An
# untrained layer mixes in more of that word, the trained layers most.
#
# ### Exercise 17.6 · `HiddenTokenAttribution` ★
# ●●● hard · 20 minutes · 2 points
#
# Write `forward`: how much of each input token is in each hidden vector? It takes sentences `x` (B,
# T, d_model) and returns (B, T, T): row i holds the shares of hidden vector i. Ask how strongly the
# vector reacts to a small change of a token's input. The derivative is a matrix (d_model, d_model),
# and its size is the root of the sum of its squares. Take this size as a share of the sum over all
# input tokens.
#
# <details><summary>Hint 1 · the idea</summary>
#
# `torch.autograd.grad` differentiates one number, and a hidden vector has d_model of them. Square
# the gradients, add up over these numbers and over the features of the input, then take the root.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# The gradient of one feature of hidden vector i is (B, T, d_model). Sentences do not depend on each
# other, so you may differentiate a sum over the batch. Each i gives sizes (B, T).
# </details>
# <details><summary>Hint 3 · “RuntimeError: Trying to backward … a second time”</summary>
#
# The graph is freed after one use unless you ask to retain it.
# </details>
# <details><summary>Hint 4 · “RuntimeError: element 0 of tensors does not require grad”</summary>
#
# x has no history here. A detached copy that requires a gradient is a fresh start.
# </details>

# %%
from attention.transformer import Encoder

# %% exercise="HiddenTokenAttribution"
from attention.interpretability import HiddenTokenAttribution

# %% check="HiddenTokenAttribution" points=2
check.HiddenTokenAttribution(HiddenTokenAttribution)

# %% demo=true
experiments.attributions(HiddenTokenAttribution, model, corpus)

# %% [markdown]
# *Share of each input token in each hidden vector of 231. Printed: the mean own share over 40
# sentences of 8 tokens.* With depth a token's own share falls, because vectors get mixed. But it
# falls nearly as much without training: this comes from the architecture. A vector's own token
# keeps the largest share everywhere, so the label of a column is a fair one. In deeper models it
# can lose its place, as Brunner et al. report for BERT.
#
# ## References
# - A. Geiger, H. Lu, T. Icard, C. Potts (2021). *Causal abstractions of neural networks.*
#   [arXiv:2106.02997](https://arxiv.org/abs/2106.02997)
# - G. Alain, Y. Bengio (2016). *Understanding intermediate layers using linear classifier probes.*
#   [arXiv:1610.01644](https://arxiv.org/abs/1610.01644)
# - G. Brunner et al. (2020). *On identifiability in Transformers.*
#   [arXiv:1908.04211](https://arxiv.org/abs/1908.04211)
# - S. Jain, B. C. Wallace (2019). *Attention is not explanation.*
#   [arXiv:1902.10186](https://arxiv.org/abs/1902.10186)
# - S. Wiegreffe, Y. Pinter (2019). *Attention is not not explanation.*
#   [arXiv:1908.04626](https://arxiv.org/abs/1908.04626)
# - E. Voita et al. (2019). *Analyzing multi-head self-attention: specialized heads do the heavy
#   lifting, the rest can be pruned.* [arXiv:1905.09418](https://arxiv.org/abs/1905.09418)
# - P. Michel, O. Levy, G. Neubig (2019). *Are sixteen heads really better than one?*
#   [arXiv:1905.10650](https://arxiv.org/abs/1905.10650)
# - N. Elhage et al. (2021). *A mathematical framework for transformer circuits.*
#   [transformer-circuits.pub](https://transformer-circuits.pub/2021/framework/index.html)
# - C. Olsson et al. (2022). *In-context learning and induction heads.*
#   [arXiv:2209.11895](https://arxiv.org/abs/2209.11895)
