# %% [markdown]
# # 11 · What does it take to train one?
#
# This lesson is about everything around the model: the optimiser, the learning rate, the loss, the
# batches and the step. For each there is a usual reason. You will take each part away and see
# whether its reason holds. Some do not.
#
# **After this lesson** you can
# - write **AdamW**, and say how it differs from plain gradient descent,
# - choose a **learning rate** by a sweep, and say when a warm-up helps,
# - smooth labels, clip gradients and fill batches by length,
# - make one step from several batches (**gradient accumulation**) that equals one big batch,
# - **evaluate** on text that was not learned from, and recognise **over-fitting**.
#
# **Time** 100 minutes, ★ 35 more · **Points** 16 · **GPU** not needed · **You need** lessons 02
# and 10

# %%
import torch
from torch import nn
from torch.nn import functional as F

from attention.provided.data.tokens import PAD
from autograder import check

torch.set_num_threads(1)  # matrices as small as those of this lesson are faster on one core

# %% [markdown]
# ## One rate for all weights
# Plain gradient descent moves every weight by the learning rate times its gradient. Here it trains
# the Transformer of lesson 10, post-norm as in the paper, at two rates, with a momentum of 0.9:
# each step repeats nine tenths of the one before.
#
# <details><summary>The code that ran</summary>
#
# ```python
# for now, batch in zip(rates, batches, strict=True):
#     used.param_groups[0]["lr"] = now
#     losses.append(update(model, used, loss_of(model, batch)))
# ```
# `used` is the optimiser, and `update` the step of lesson 02's loop:
# ```python
# optimizer.zero_grad()
# loss.backward()
# norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
# ```
# Then `optimizer.step()`. Here `max_norm` is infinite, so nothing is clipped.
# </details>

# %% demo=true
from attention.experiments import training as experiments

ends = experiments.two_rates()

# %% [markdown]
# The entropy is the loss of a model that knows only how frequent each letter is. At the low rate
# the loss slowly falls below the entropy; at the high rate it becomes NaN. An intermediate rate
# does better, but one rate must still serve every weight.
#
# ## A loop, and seven parts
# Training is the loop of lesson 02. Around it, each of these parts has a usual reason:
#
# | part | without it, so the claim goes, |
# |---|---|
# | a step size for each weight (Adam) | one rate must suit all weights |
# | a rate that rises, then falls | training gets stuck |
# | smoothed labels | the model is too certain |
# | batches of similar length | much work is done on padding |
# | clipping | one strange batch undoes a hundred good ones |
# | gradients of several batches | gradients are noisy |
# | the mean of the last weights | the result depends on the last step |
#
# ## A step size for each weight
# **AdamW** keeps two running means for each weight: *m*, of its gradient, and *v*, of its squared
# gradient. It divides *m* by the root of *v*. A weight whose gradient stays the same moves by about
# the learning rate at every step, however small that gradient is. If the gradient keeps changing
# sign, *m* is small beside √*v*, and the weight hardly moves.
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1)\,g \qquad v \leftarrow \beta_2 v + (1 - \beta_2)\,g^2$$
# $$\theta \leftarrow \theta - \eta\,\lambda\,\theta -
# \eta\,\frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}$$
#
# θ is the weight, g its gradient, t the step number and η the learning rate. Both means begin at 0,
# so at first they are too small: dividing by 1 − βᵗ corrects that. The **weight decay** λ shrinks
# the weight itself, and passes through neither mean; that is the W in the name.
#
# By hand, with β₁ = 0.9, for three equal gradients, first of 5, then of 0.005. What is *m* after
# the correction?

# %%
from attention.provided import demand  # refuses numbers that make no sense

for gradient in (5.0, 0.005):
    m = 0.0
    for step in (1, 2, 3):
        m = 0.9 * m + 0.1 * gradient
        print(f"step {step}: m {m:.5f}   corrected {m / (1 - 0.9**step):.5f}")

# %% [markdown]
# The corrected *m* is the gradient itself, and the corrected *v*, not shown, its square. So both
# weights move equally far, although their gradients differ a thousandfold.
#
# ### Exercise 11.1 · `adamw_step`
# ●●○ medium · 18 minutes · 2 points
#
# Write one step for one tensor of weights. Return new tensors.
#
# <details><summary>Hint 1 · the order</summary>
#
# Decay, two means, two corrections, one step: one line each. Which *m* and *v* does the next step
# need?
# </details>
# <details><summary>Hint 2 · “the first step should go as far as the learning rate”</summary>
#
# Put t = 1 and m = v = 0 into the formula: both corrections must cancel 1 − β exactly. Is ε inside
# or outside the root?
# </details>

# %% exercise="adamw_step"
from attention.training import adamw_step

# %% check="adamw_step" points=2
check.adamw_step(adamw_step)

# %% [markdown]
# AdamW stores two more numbers for each weight. What does it gain? The next figure, like most here,
# is drawn from recorded trainings: the loop above, with other rates and optimisers.
# `experiments.optimizers?` shows what was changed and what was kept, and how to run one point of
# it.

# %% demo=true
axes = experiments.optimizers()

# %% [markdown]
# *Loss after 60 steps against the learning rate, three seeds each, for gradient descent with
# momentum 0.9 (SGD) and for Adam, both with a warm-up of 20 steps; a cross is NaN.* At its best
# rate, Adam ends at a much lower loss than SGD at its own best.
#
# ## A learning rate that rises and falls
# The paper's schedule has two parts, a line that rises and a curve that falls. They meet at the end
# of the **warm-up**, the steps during which the rate rises:
#
# $$\text{rate} = \text{factor} \cdot d_\text{model}^{-0.5} \cdot
# \min\!\big(\text{step} \cdot \text{warmup}^{-1.5},\; \text{step}^{-0.5}\big)$$
#
# By hand, for a warm-up of 4 steps:

# %%
for step in (1, 2, 4, 9, 16):
    line, curve = step * 4**-1.5, step**-0.5
    print(f"step {step:2d}   line {line:.3f}   curve {curve:.3f}   smaller {min(line, curve):.3f}")

# %% [markdown]
# ### Exercise 11.2 · `noam_learning_rate`
# ●○○ easy · 8 minutes · 2 points
#
# Write the schedule, named after Noam Shazeer, a co-author of the paper. Steps count from 1.
#
# <details><summary>Hint · “the rate of step 1 is wrong”</summary>
#
# At step 1 the line must be the smaller. At step = warm-up the two must be equal.
# </details>

# %% exercise="noam_learning_rate"
from attention.training import noam_learning_rate

# %% check="noam_learning_rate" points=2
check.noam_learning_rate(noam_learning_rate)

# %% [markdown]
# ### Predict first
# Adam trains the same model for 30 steps: at a constant rate of 0.005, at a constant 0.02, and with
# your schedule, which reaches 0.02 at step 20. Which ends with the lowest loss?

# %%
from attention.provided.predictions import compare

prediction = None  # "0.005", "0.02" or "warm-up"; None skips this

# %% demo=true
ends = experiments.warm_up(noam_learning_rate)
compare(prediction, min(ends, key=ends.get), "lowest loss with")

# %% [markdown]
# *Left: the learning rate against the step for warm-ups of 1 000, 4 000 (the paper's) and 16 000
# steps, d_model = 512. Right: loss of the small post-norm model with two constant rates and with
# the schedule.* A rate of 0.02 is too high for the first step but not for the twentieth. Still, a
# warm-up may not be needed: the lower constant rate does as well or better.
#
# Move the sliders *warm-up* and *d_model*. After the peak, all schedules for one *d*_model lie on
# the same curve. A larger model gets a lower rate throughout.

# %% demo=true
from attention.provided.figures import moving

moving.warm_up()

# %% [markdown]
# For a fair comparison, sweep the rate for both:

# %% demo=true
axes = experiments.warm_up_by_depth()

# %% [markdown]
# *Loss after 60 steps against the highest learning rate, with a constant rate and with a warm-up,
# three seeds each.* With two layers a constant 0.005 is as good as a warm-up to 0.01. The warm-up
# widens the range of rates that work: at 0.02 the model still trains with it, while the constant
# rate fails.
#
# With six layers the constant rate already fails at 0.008, and its best result is worse than the
# warm-up's for each seed. With a warm-up, a deep post-norm model can use a rate at which it fails
# if it starts with it.
#
# ## Targets that are not too certain
# Cross-entropy asks for a probability of 1 for the right token. No finite scores give that, so
# training keeps raising them. **Label smoothing** asks for less: it spreads a share ε of the
# probability evenly over all V tokens of the vocabulary.
#
# $$\text{loss} = -(1 - \varepsilon)\,\log p_\text{right}
# \;-\; \varepsilon\,\frac1V \sum_{w} \log p_w$$
#
# ### Exercise 11.3 · `label_smoothed_loss`
# ●●○ medium · 15 minutes · 2 points
#
# Return the mean of this loss over all real tokens, and 0 if there is none. Where the target is PAD
# there is no loss, neither from the first part nor from the second.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Each of the two parts gives one number per token. Then take the mean over the real tokens.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Log-probabilities are `(B, T, vocab_size)`. `gather` takes one number of the last axis at each
# position; its index needs that axis too: `(B, T, 1)`.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# With smoothing = 0 and no PAD, the result is the loss of lesson 02. Which one term does ε add? By
# what do you divide when some targets are PAD?
# </details>

# %% exercise="label_smoothed_loss"
from attention.training import label_smoothed_loss

# %% check="label_smoothed_loss" points=2
check.label_smoothed_loss(label_smoothed_loss)

# %% [markdown]
# German numbers need a vocabulary of 24 tokens. Let the model give the right one a probability *p*,
# and each of the others an equal share of the rest. Which *p* has the smallest loss?

# %% demo=true
smallest = experiments.certainty(label_smoothed_loss)

# %% [markdown]
# *Loss against the probability that the model gives to the right token, for three shares of
# smoothing.* Without smoothing, a larger *p* is always better. With ε = 0.1 the best *p* is just
# over 0.9, and beyond it certainty costs: the loss rises steeply. A smoothed loss cannot reach 0,
# so we measure a held-out loss with ε = 0. From here on we use PyTorch's `F.cross_entropy`, with
# its own `label_smoothing`.
#
# ## Over-fitting, and whether smoothing helps
# Here the model sees the same 60 numbers again and again, with ε = 0 or ε = 0.1.
#
# <details><summary>The code that ran</summary>
#
# ```python
# for step in range(1, steps + 1):
#     adam.param_groups[0]["lr"] = rate(step, "rise", 0.003, 40)
#     batch = corpus.batch(draw.sample(pairs, 32))
#     bar.update(step, update(model, adam, loss_of(model, batch, smoothing), 1.0))
# ```
# </details>

# %% demo=true
axes = experiments.overfitting()

# %% [markdown]
# *Losses without smoothing, the held-out one from step 60 on, and the mean probability of the
# model's own letter where that letter is wrong; mean and range of three seeds.* This is
# **over-fitting**: the loss on the 60 numbers falls to 0, or to about 0.1 with smoothing, while the
# loss on all others stops at about a half.
#
# Here smoothing keeps its promise: where the model is wrong it is less certain (about 0.55 instead
# of 0.8), and its held-out loss is lower. The share of right letters hardly differs.
#
# ## Batches of equal work
# A batch is a rectangle. Short rows are filled up with PAD, which costs as much as text. So
# sentences of similar length share a batch: **length buckets**. If each batch is limited by its
# number of *tokens*, padding included, all are about the same work and fit into memory. How much
# padding do buckets save, on our numbers and on 5 781 docstrings?

# %% demo=true
shares = experiments.padding()

# %% [markdown]
# One pass over the data is an **epoch**, here 343 batches. Buckets are read in random order, not
# the shortest first. The last figure of this lesson shows why.
#
# ## Short gradients
# Now and then a batch gives a gradient much longer than usual. **Clipping** sees all gradients as
# one long vector, and limits its length but keeps its direction: if its norm is above `max_norm`,
# all numbers are multiplied by the same factor.
#
# Does one strange batch undo a hundred good ones? In one experiment (`experiments.clipping()`)
# AdamW trains for 60 steps, then meets one batch of random letters, whose gradient is two to three
# times as long as usual. Ten ordinary steps later the held-out loss is lower than before that
# batch, with every seed, clipped or not; with SGD it is so after twenty. Where clipping helps is in
# ordinary steps: before the strange batch comes, the loss is lower with it, for both optimisers and
# all seeds.
#
# <details><summary>The code that ran</summary>
#
# ```python
# for step, batch in enumerate(corpus.batches(32, before + after, seed), start=1):
#     used = adam if optimizer == "AdamW" or step <= before // 2 else sgd
#     adam.param_groups[0]["lr"] = rate(step, "rise", 0.005, 40)
#     if step == before + 1:
#         found.append(evaluate(model, held_out)["loss"])
#         batch = strange(batch, len(corpus.target_vocabulary), seed)
#     bar.update(step, update(model, used, loss_of(model, batch), max_norm, norms))
# ```
# So SGD takes over from AdamW after 30 steps.
# </details>
#
# ## One step from many batches
# The gradient of a small batch is a noisy estimate of the gradient of all data. How noisy is it?
#
# <details><summary>The code that ran</summary>
#
# ```python
# parts = [_gradient(model, corpus, draw.sample(corpus.train, size))[1] for _ in range(6)]
# likeness = F.cosine_similarity(torch.stack(parts), whole, dim=1).clamp(-1, 1)
# found[f"angles of {size}"] = [round(x, 1) for x in likeness.acos().rad2deg().tolist()]
# ```
# `whole` is the gradient of 4 000 pairs, as one long vector.
# </details>

# %% demo=true
axes = experiments.angles()

# %% [markdown]
# *Angle between the gradient of a batch and that of 4 000 pairs, before training and after 60 and
# 300 steps of the training of lesson 10; six batches of each size for each of three seeds.* At 90°
# the gradient of a batch tells nothing about that of all data. Before
# training, 64 pairs are enough: the median angle is 5°. After 300 steps it is 72°, and still 68°
# with 256 pairs. The noise grows as the loss falls (McCandlish and colleagues, 2018), so a batch
# large enough at first is too small later.
#
# The paper's batches held about 25 000 tokens. If only 2 500 fit into memory, add up the
# gradients of ten batches and make one step. This is **gradient accumulation**. PyTorch's
# `backward` adds to the gradients that are there, so each step begins by setting them to zero.
#
# ![Two batches of 3 and 17 real tokens. Each passes through the model, its mean loss is multiplied
# by its share of all tokens, 3/20 and 17/20, and backward adds to the same gradients. Then these
# are clipped, and the optimiser changes the weights once.](figures/training_step.svg)
#
# Training and evaluation share a model and its loss. (`dtype` is for lesson 12.)

# %%
from attention.transformer import Transformer

# %% given="ModelAndLoss"
from attention.training import ModelAndLoss

# %% [markdown]
# ### Exercise 11.4 · `TrainStep`
# ●●● hard · 25 minutes · 3 points
#
# Graded in four parts: one batch (0.5), several batches and steps (1.5), the loss returned (0.5),
# clipping and training mode (0.5).
#
# Write the step of the figure. `self.loss` is the mean over the real tokens of *one* batch.
# Together the batches must give the loss and gradients of one big batch. Go backward before the
# next batch begins, so that only one is in memory. `nn.utils.clip_grad_norm_` clips.
#
# <details><summary>Hint 1 · the idea</summary>
#
# You want a mean over 20 tokens, and have means over 3 and over 17: weight each with its share. The
# gradients follow, since the gradient of a sum is the sum of the gradients.
# </details>
# <details><summary>Hint 2 · what happens how often</summary>
#
# Once: training mode, gradients to zero. For each batch: forward, backward. Once: clip, step.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# Write it for a list of one batch first. A batch's share depends on the tokens of all: can you
# count these before the loop? `detach()` a loss if you want only its number.
# </details>

# %% exercise="TrainStep"
from attention.training import TrainStep

# %% check="TrainStep" points=3
check.TrainStep(TrainStep)

# %% demo=true
apart = experiments.one_step_or_three_parts(TrainStep)

# %% [markdown]
# The two steps agree to rounding. The plain mean of the three losses differs: in it the third part,
# short numbers, counts as much as the others.
#
# ## Is it learning?
# The loss that counts is measured on text that the model does not learn from, without dropout and
# without gradients. Its exponential is the **perplexity**: at 3 the model is as unsure of the next
# token as if it chose among 3 equally probable ones.
#
# ### Exercise 11.5 · `Evaluation`
# ●●○ medium · 12 minutes · 2 points
#
# Write `mean_loss`, the loss per real token over all batches, without dropout or gradients.
# `forward`, which is given, puts the model back into the mode it was in.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A mean times its number of tokens is a sum. Add up sums and numbers, and divide once at the end.
# </details>
# <details><summary>Hint 2 · without dropout or gradients</summary>
#
# These are two switches: the model's mode, and `torch.no_grad()`.
# </details>

# %% exercise="Evaluation"
from attention.training import Evaluation

# %% check="Evaluation" points=2
check.Evaluation(Evaluation)

# %% [markdown]
# ## All of it together
# Here is the loop of lesson 02 once more, for the numbers translator. Your schedule sets the rate
# of each step, `TrainStep` goes backward, clips and updates, and every ten steps `Evaluation`
# measures. It takes about 10 seconds.
#
# ### Predict first
# The targets are smoothed with ε = 0.1, so the training loss cannot fall below 0.616. What will the
# *held-out* loss be in the end, with ε = 0?

# %%
prediction = None  # a loss in nats per letter; None skips this

# %% demo=true
from attention.provided.data.numbers import numbers

model, held_out = experiments.fresh(numbers()), experiments.held_out()
adam = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0)
step, evaluation = TrainStep(model, adam), Evaluation(model)
losses, outside, checkpoints = [], {}, []

# %% demo=true
for number, batch in experiments.numbered_batches(80, losses):
    adam.param_groups[0]["lr"] = noam_learning_rate(number, 64, 40, factor=0.37)
    losses.append(step([batch]).item())
    if number % 10 == 0:
        outside[number] = evaluation(held_out).item()
        checkpoints.append(experiments.copy_of(model))

# %% demo=true
ax = experiments.learning_curve(losses, outside)
compare(prediction, round(outside[len(losses)], 3), "held-out loss")

# %% [markdown]
# *Training loss, with smoothed targets, and held-out loss, without smoothing, every 10 steps;
# dashed, both losses of a model that says exactly what the smoothed targets ask for.* Such a model
# gives the right letter 0.9 + 0.1/24 = 0.904. Its smoothed loss is 0.616, its held-out loss −ln
# 0.904 = 0.10. So compare each curve with its own line: the held-out loss may lie below the
# training loss.
#
# ## The mean of the last weights
# Each step is noisy, so the last weights are the result of chance, too. Vaswani and colleagues
# averaged the weights of the last checkpoints, number by number. A checkpoint is a copy of all
# weights; here there is one every 10 steps.

# %% given="average_checkpoints"
from attention.training import average_checkpoints

# %% demo=true
for count in (1, 3, 5):
    model.load_state_dict(average_checkpoints(checkpoints[-count:]))
    print(f"mean of the last {count}: held-out loss {evaluation(held_out).item():.4f}")

# %% [markdown]
# Three are better than one. The mean of five reaches back to step 40, when the held-out loss was
# still twice as high.
#
# ## Which parts were needed?
# Here is the same training over 120 steps, with one part changed at a time and three seeds each
# (recorded):
#
# <details><summary>The code that ran</summary>
#
# ```python
# for step, batch in zip(range(1, steps + 1), batches_in(corpus, order, seed), strict=False):
#     adam.param_groups[0]["lr"] = rate(step, schedule, PEAK, WARMUP)
#     loss = update(model, adam, loss_of(model, batch, smoothing), max_norm)
# ```
# `order`, `smoothing` and `max_norm` are what changes.
# </details>

# %% demo=true
axes = experiments.parts_changed()

# %% [markdown]
# *After 120 steps, for held-out numbers: loss and share of right letters with the last weights,
# and share of right letters with the mean of the last three checkpoints (one every 10 steps). Each
# dot is a seed.*
#
# - **Order.** In 120 steps random batches teach more than buckets: buckets save work but cost some
#   learning. The order in which buckets are read shows at the end of an epoch, when all numbers
#   were read: with the shortest first 0.90 to 0.92 of the letters are right, in random order 0.996
#   or more (printed).
# - **Smoothing.** Without it the loss is lower, but about one more letter in a hundred is wrong.
# - **Clipping.** Without it slightly fewer letters are right.
# - **Averaging.** In the first three rows the mean of three checkpoints gets more letters right
#   than the last weights, with every seed. With random batches there is almost nothing left to
#   gain.
#
# ## Limits
# The model was small, the language regular. How much dropout, weight decay and smoothing help
# depends on the amount of text. Sweeping one number at a time misses how rate, depth and batch size
# interact. How the loss falls with the size of the model and of its data is a field of its own, the
# *scaling laws* (Hoffmann et al., 2022).
#
# ## Something of your own
# Find a better recipe for 80 steps. Change one thing in the loop above: a schedule of your own
# (triangle, cosine, staircase), another optimiser, no smoothing. Train both versions from three
# seeds, `experiments.fresh(numbers(), seed)`, and draw the held-out losses in one figure. Is the
# difference larger than that between seeds?

# %%
# Your own experiment. It is handed in with the notebook, and not graded.

# %% [markdown]
# ## Summary
# AdamW gives each weight its own step size. A warm-up widens the range of rates that work. The
# gradients of several batches add up to those of one if each counts by its tokens. Not every common
# reason survives its experiment: change one thing, and look.
#
# **Next** [12 · What does the hardware want?](../12_training_on_gpu/12_training_on_gpu.ipynb) How
# much work a step is, how fast a machine does it, and how to stop and resume training.
#
# ## Open questions
# 1. How many numbers does this model need to learn the language rather than just those numbers?
#    `experiments.few_sentences(60, 0.0, seed=0)` trains on 60; try more.
# 2. How long must a warm-up be? Try 5 steps instead of 20:
#    `experiments.first_steps(6, "noam", 0.008, seed=0, warmup=5)`.

# %% [markdown] answer=true
# <details><summary>Answers to the open questions</summary>
#
# Recorded by `python -m attention.experiments training`, with three seeds each.
#
# 1. With 300 numbers the difference is clear: after 150 steps the held-out loss is 0.05 to 0.06,
#    and the loss on the 300 is under 0.02. With 60 the held-out loss ends at 0.52 to 0.60.
# 2. Longer than 5 steps: with 5 the loss ends at 0.86 to 1.13, with 20 at 0.40 to 0.63.
#
# </details>

# %% [markdown]
# ## Write the rest yourself ★
# So far you have only used batches by length and clipping. `python -m attention.train` needs both;
# with `--mine` it takes yours, which `autograder collect` gathers.
#
# ### Exercise 11.6 · `batch_by_tokens` ★
# ●●○ medium · 18 minutes · 3 points
#
# Graded in three parts: in the order of length (1), filled as far as it goes (1.5), a
# sentence too long, or none (0.5).
#
# Take the sentences from shortest to longest, and close a batch when one more would make it too
# large. Its size is that of the padded batch: the number of sentences times the longest length.
#
# <details><summary>Hint 1 · the idea</summary>
#
# In this order the next sentence is always the longest so far. Its length and the number of
# sentences give the size of the padded batch.
# </details>
# <details><summary>Hint 2 · sorting indices</summary>
#
# `sorted` takes a `key`: sort the indices by their lengths. It keeps equal ones in their order.
# </details>
# <details><summary>Hint 3 · a smaller step</summary>
#
# With lengths 3, 9, 2, 5, and 9 tokens at most, how large is a batch of the first two? What must
# you ask before the third goes in? What if there is no batch yet?
# </details>

# %% exercise="batch_by_tokens"
from attention.training import batch_by_tokens

# %% check="batch_by_tokens" points=3
check.batch_by_tokens(batch_by_tokens)

# %% [markdown]
# ### Exercise 11.7 · `clip_gradients` ★
# ●●○ medium · 12 minutes · 2 points
#
# Shorten all gradients by one common factor, so that together, as one long vector, they have a norm
# of at most `max_norm`. They come from a loss that was multiplied by `loss_scale` (lesson 12 says
# why). What has to be done first?
#
# <details><summary>Hint 1 · one norm of many tensors</summary>
#
# The norm of a vector of norms is the norm of all numbers. `torch.stack` makes a vector of single
# numbers.
# </details>
# <details><summary>Hint 2 · short gradients, and 0</summary>
#
# Which number, in place of the norm, makes the factor exactly 1 where the norm is below `max_norm`,
# and is never 0?
# </details>

# %% exercise="clip_gradients"
from attention.training import clip_gradients

# %% check="clip_gradients" points=2
check.clip_gradients(clip_gradients)

# %% [markdown]
# ## References
# - A. Vaswani et al. (2017). *Attention is all you need*, sections 5 and 6.
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)
# - C. Szegedy et al. (2016). *Rethinking the Inception architecture for computer vision*,
#   section 7. [arXiv:1512.00567](https://arxiv.org/abs/1512.00567)
# - R. Pascanu, T. Mikolov, Y. Bengio (2013). *On the difficulty of training recurrent neural
#   networks.* [arXiv:1211.5063](https://arxiv.org/abs/1211.5063)
# - D. P. Kingma, J. Ba (2015). *Adam: a method for stochastic optimization.*
#   [arXiv:1412.6980](https://arxiv.org/abs/1412.6980)
# - I. Loshchilov, F. Hutter (2019). *Decoupled weight decay regularization.*
#   [arXiv:1711.05101](https://arxiv.org/abs/1711.05101)
# - S. McCandlish, J. Kaplan, D. Amodei, OpenAI Dota Team (2018). *An empirical model of large-batch
#   training.* [arXiv:1812.06162](https://arxiv.org/abs/1812.06162)
# - J. Hoffmann et al. (2022). *Training compute-optimal large language models.*
#   [arXiv:2203.15556](https://arxiv.org/abs/2203.15556)
