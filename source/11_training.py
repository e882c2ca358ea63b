# %% [markdown]
# # 11 · What does it take to train one?
#
# The model is built. In lesson 10 it learned on numbers, where nearly every way of training works.
# On millions of sentences it does not. This lesson builds what stands around a model while it
# learns: the schedule, the loss, the batches, and the step.
#
# **After this lesson** you can
# - give a Transformer the **learning rate** that it needs, and targets that are not too certain,
# - fill **batches** by tokens, so that hardly any of the work goes into padding,
# - make one **step** of many batches, with short gradients, and know that it is the same step,
# - **evaluate** on text that was not learned from, and **average** what a training leaves,
# - write the **optimiser** itself, and say what it costs.
#
# **Time** 130 minutes · **Points** 18 · **GPU** used if there is one, not needed · **You need**
# lessons 02 and 10

# %%
import math
import os
import random
import time

import torch
from torch import nn
from torch.nn import functional as F

from attention.provided import plots, translators
from attention.provided.data import PAD
from attention.provided.progress import Bar
from attention.transformer import Transformer
from autograder import check

SHORT = bool(os.environ.get("NBGRADER_EXECUTION"))  # while nbgrader runs this, few steps will do
device = "cuda" if torch.cuda.is_available() else "cpu"
device = "mps" if torch.backends.mps.is_available() else device

# %% [markdown]
# ## What fails without this idea
# The Transformer of the paper is post-norm, the order that needs care (lesson 09). Let us train a
# small one, two layers on each side, on the numbers of lesson 10, in the plainest way: the same
# learning rate from the first step to the last. Once it is low, once it is high.

# %% demo=true
corpus = translators.data.numbers()
sizes = len(corpus.source_vocabulary), len(corpus.target_vocabulary)
n_steps = 3 if SHORT else 50


def plainly(rates, label):
    """Train a fresh post-norm Transformer with these learning rates; returns the losses."""
    torch.manual_seed(translators.SEED)
    model = Transformer(*sizes, **translators.SMALL | {"pre_norm": False})
    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    batches = corpus.batches(32, len(rates), translators.SEED)
    losses = []
    with Bar(len(rates), label) as bar, translators.one_thread():
        for rate, batch in zip(rates, batches, strict=True):
            adam.param_groups[0]["lr"] = rate
            adam.zero_grad()
            logits = model(batch.source, batch.target).flatten(0, 1)
            loss = F.cross_entropy(logits, batch.target.flatten(), ignore_index=PAD)
            loss.backward()
            adam.step()
            losses.append(loss.item())
            bar.update(len(losses), losses[-1])
    return losses


runs = {f"always {rate}": plainly([rate] * n_steps, f"rate {rate}") for rate in (0.001, 0.02)}
letters = corpus.batch(corpus.train).target
shares = letters[letters != PAD].bincount() / (letters != PAD).sum()
entropy = -(shares * shares.clamp(min=1e-9).log()).sum()
print(f"entropy of how frequent the letters are: {entropy:.2f}")

# %% [markdown]
# The low rate is slow. The high rate is stuck near the entropy of the letters' frequencies: the
# model knows how frequent each letter is, and nothing else. The first steps were so large that they
# destroyed what a beginning needs.
#
# ## The idea
# Nothing in this lesson changes the model. A training is a loop around it, and each part of the
# loop has a reason:
#
# | part | what goes wrong otherwise |
# |---|---|
# | learning rate that rises, then falls | stuck at once, or slow, or it jumps about at the end |
# | smoothed labels | the model learns to be certain, also where it is wrong |
# | batches by tokens | much of the work is done on padding |
# | gradients of several batches | a batch that fits into memory gives a noisy gradient |
# | clipping | one strange batch undoes a hundred good ones |
# | the mean of the last weights | what was reached depends on where the last step landed |
#
# ## A learning rate that rises and falls
# The paper's schedule has two parts, a line that rises and a curve that falls. The steps in which
# the rate rises are the **warm-up**; at its end the two meet:
#
# $$\text{rate} = \text{factor} \cdot d_\text{model}^{-0.5} \cdot
# \min\!\big(\text{step} \cdot \text{warmup}^{-1.5},\; \text{step}^{-0.5}\big)$$
#
# By hand, for d_model = 100 and a warm-up of 4 steps:

# %%
for step in (1, 2, 4, 9, 16):
    line, curve = step / 4**1.5, 1 / math.sqrt(step)
    print(f"step {step:2d}   line {line:.3f}   curve {curve:.3f}   smaller {min(line, curve):.3f}")

# %% [markdown]
# ### Exercise 11.1 · `noam_learning_rate`
# ●○○ easy · 6 minutes · 2 points
#
# The schedule is called after Noam Shazeer, one of the paper's authors. Steps are counted from 1.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Compute both parts and take the smaller one. Then two things multiply it.
# </details>
# <details><summary>Hint 2 · “the rate of step 1 is wrong”</summary>
#
# At step 1 the line must be the smaller part. At step = warm-up both must be equal: put it into
# both. What is left?
# </details>

# %% exercise="noam_learning_rate"
from attention.training import noam_learning_rate

# %% check="noam_learning_rate" points=2
check.noam_learning_rate(noam_learning_rate)

# %% [markdown]
# ### Predict first
# Left, you will see the schedule for d_model = 512 and three warm-ups. Where do the curves lie when
# all of them have passed their peaks? Right, the model from above gets a schedule whose *highest*
# rate is the one that was fatal.

# %% demo=true
steps = range(1, 40_001, 100)
schedules = {
    f"{warmup:,} steps": [noam_learning_rate(step, 512, warmup) for step in steps]
    for warmup in (1000, 4000, 16_000)
}
rates = [noam_learning_rate(step, 64, 40) for step in range(1, n_steps + 1)]
runs["40 steps of warm-up"] = plainly(rates, "with a warm-up")
axes = plots.panels(columns=2, width=4.4, height=3.0, share=False)
plots.lines(steps, schedules, axes[0], "learning rate", "step")
axes[0].legend(fontsize=8)
axes[0].set_xticks((0, 16_000, 32_000))
plots.lines(range(1, n_steps + 1), runs, axes[1], "loss, nats a letter", "step")
axes[1].legend(fontsize=8)
for label, losses in runs.items():
    print(f"{label:<20} loss after {n_steps} steps {losses[-1]:.2f}")
print(f"highest rate with the warm-up: {noam_learning_rate(40, 64, 40):.4f}")

# %% [markdown]
# *Left: the learning rate against the step for warm-ups of 1 000, 4 000 (the paper's) and 16 000
# steps, d_model = 512. Right: loss of the small post-norm model with two constant rates, and with
# 40 steps of warm-up.* Behind the peaks all schedules are one curve: a longer warm-up only cuts
# more from its top. And the rate that was fatal from the first step is a good one from the fortieth
# on.
#
# ## Targets that are not too certain
# Cross-entropy wants a probability of 1 for the right token. No finite scores give that, so the
# model is rewarded for ever larger ones. **Label smoothing** wants less: it spreads a share ε of
# the probability evenly over all V tokens of the vocabulary.
#
# $$\text{loss} = -(1 - \varepsilon)\,\log p_\text{right}
# \;-\; \varepsilon\,\frac1V \sum_{w} \log p_w$$
#
# ### Exercise 11.2 · `label_smoothed_loss`
# ●●○ medium · 12 minutes · 2 points
#
# Return the mean of this loss over all real tokens. Where the target is PAD there is no loss,
# neither from the first part nor from the second.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Log-probabilities first. From them, one number per token for each of the two parts. Then the mean
# over those that are real.
# </details>
# <details><summary>Hint 2 · the shapes</summary>
#
# Log-probabilities `(B, T, vocab_size)`. `gather` takes one of the last axis at each position; its
# index needs that axis too: `(B, T, 1)`.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# log_p   = log-softmax over the vocabulary
# first   = log_p at the target, for each position
# second  = mean of log_p over the vocabulary
# loss    = minus the weighted sum of both
# sum of the loss where the target is real, over how many these are
# ```
# </details>

# %% exercise="label_smoothed_loss"
from attention.training import label_smoothed_loss

# %% check="label_smoothed_loss" points=2
check.label_smoothed_loss(label_smoothed_loss)

# %% [markdown]
# ### Predict first
# A vocabulary of 24 tokens, like that of the German numbers: 21 letters, PAD, BOS and EOS. The
# model gives the right one a probability *p*, and each of the others an equal share of the rest.
# Which *p* has the smallest loss without smoothing, and with ε = 0.1?

# %% demo=true
V, probabilities = 24, torch.linspace(0.5, 0.9999, 400, dtype=torch.float64)
curves = {}
for smoothing in (0.0, 0.1, 0.2):
    losses = []
    for p in probabilities:
        others = ((1 - p) / (V - 1)).expand(V - 1)
        logits = torch.cat([p[None], others]).log().view(1, 1, V)
        target = torch.tensor([[PAD + 1]])
        losses.append(label_smoothed_loss(logits.roll(1, dims=-1), target, smoothing).item())
    curves[f"ε = {smoothing}"] = losses
    best = min(range(400), key=losses.__getitem__)
    print(f"ε = {smoothing}: smallest loss {losses[best]:.3f} at p = {probabilities[best]:.3f}")
title = "loss against the probability of the right token"
ax = plots.lines(probabilities, curves, None, title, "probability of the right token", "loss")

# %% [markdown]
# *Loss against the probability that the model gives to the right token, for three shares of
# smoothing.* Without smoothing more is always better. With ε = 0.1 the best is a little over 0.9,
# and certainty costs: the loss rises steeply at the right edge. Smoothed losses never reach 0, so
# they cannot be compared with others. For the held-out loss we will set ε to 0.
#
# PyTorch's `F.cross_entropy` has the argument `label_smoothing` and does all of this in one go.
# From here on we take it.
#
# ## Batches of equal work
# A batch is a rectangle. Short rows are filled up with PAD, and PAD costs as much as text. So
# sentences of similar length should share a batch. And a batch should be limited by its *tokens*,
# padding included, not by its sentences: then every batch is about the same work, and fits into
# memory.
#
# ### Exercise 11.3 · `batch_by_tokens`
# ●●○ medium · 15 minutes · 3 points
#
# Take the sentences from the shortest to the longest, and close a batch when one more would make it
# too large.
#
# <details><summary>Hint 1 · the idea</summary>
#
# In this order the sentence that comes is always the longest so far. So the size of the padded
# batch follows from its length and from how many sentences there would be.
# </details>
# <details><summary>Hint 2 · sorting indices</summary>
#
# `sorted` takes a `key`. Sort the indices 0, 1, 2, … by the lengths that they stand for. Python's
# sort keeps equal ones in their order.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# batches = none yet
# for each index, by length
#     refuse it if it is too long even alone
#     if there is no batch, or it does not fit into the last one: a new one
#     put it into the last batch
# ```
# </details>

# %% exercise="batch_by_tokens"
from attention.training import batch_by_tokens

# %% check="batch_by_tokens" points=3
check.batch_by_tokens(batch_by_tokens)

# %% demo=true
lengths = [len(german) + 1 for _, _, german in corpus.train]  # with EOS
buckets = batch_by_tokens(lengths, 2500)
shuffled = random.Random(0).sample(range(len(lengths)), len(lengths))
at_random = [shuffled[begin : begin + 50] for begin in range(0, len(lengths), 50)]
axes = plots.panels(columns=2, width=4.2, height=3.0, share=False)
for ax, (label, batches) in zip(
    axes, {"at random": at_random, "by tokens": buckets}.items(), strict=True
):
    padded = [len(batch) * max(lengths[index] for index in batch) for batch in batches]
    share = 1 - sum(lengths) / sum(padded)
    print(f"{label}: {len(batches)} batches, at most {max(padded)} tokens, {share:.1%} are PAD")
    target = corpus.batch([corpus.train[index] for index in batches[len(batches) // 2]]).target
    plots.heatmap((target != PAD).float(), ax, label, colorbar=False)
    ax.set(xlabel="position", ylabel="sentence")

# %% [markdown]
# *One batch of each kind. Dark: letters; light: padding. Left, 50 numbers at random; right, a batch
# of at most 2 500 tokens.* The numbers are long and alike. Sentences of a real corpus differ more,
# and random batches of them waste more.
#
# But now the order is no longer random: the batches come in the order of their lengths. A model
# that sees all short sentences first, and then all long ones, forgets. So batches are read in a new
# random order for each **epoch**, as one pass over the data is called.
#
# ### Exercise 11.4 · `epoch_order`
# ●○○ easy · 8 minutes · 1 point
#
# An order at random, which can be asked for again: from seed and epoch alone. Who resumes in the
# middle of epoch 3 asks for the order of epoch 3, and goes on where it broke off.
#
# <details><summary>Hint 1 · the idea</summary>
#
# `random.Random(x)` is a generator of its own, which begins at `x`, and `shuffle` is one of its
# methods. What may `x` be? A number, but also a text. (`random.seed` would change the generator of
# the whole program, on which something else may depend.)
# </details>
# <details><summary>Hint 2 · “seed 0, epoch 1 and seed 1, epoch 0 are the same”</summary>
#
# A sum does not remember its terms, nor does 1000 · seed + epoch when epochs are many. Two numbers
# with a space between them do.
# </details>

# %% exercise="epoch_order"
from attention.training import epoch_order

# %% check="epoch_order" points=1
check.epoch_order(epoch_order)

# %% [markdown]
# ## Short gradients
# Now and then a batch gives a gradient ten times as long as usual. **Clipping** keeps its direction
# and limits its length: all gradients are seen as one long vector, and if its norm is above
# `max_norm`, all numbers are multiplied by the same factor.
#
# ### Exercise 11.5 · `clip_gradients`
# ●●○ medium · 10 minutes · 2 points
#
# The gradients are those of a loss that was multiplied by `loss_scale`, as is done where numbers
# have so few bits that small gradients would become 0 (lesson 12). What has to be done first?
#
# <details><summary>Hint 1 · the idea</summary>
#
# Four things, one after the other: unscale, one norm, one factor, multiply.
# </details>
# <details><summary>Hint 2 · one norm of many tensors</summary>
#
# The norm of a vector of norms is the norm of all numbers together. `torch.stack` makes a vector of
# single numbers.
# </details>
# <details><summary>Hint 3 · short gradients, and 0</summary>
#
# The factor is never above 1. And if all gradients are 0, `max_norm / 0` is inf for a tensor and an
# error for a Python number. Dividing by the larger of norm and `max_norm` avoids both.
# </details>

# %% exercise="clip_gradients"
from attention.training import clip_gradients

# %% check="clip_gradients" points=2
check.clip_gradients(clip_gradients)

# %% [markdown]
# ## One step from many batches
# The paper's batches held about 25 000 tokens on each side, on eight GPUs. If only 2 500 fit into
# your memory, take ten batches, add up their gradients, and make one step. PyTorch adds gradients
# up by itself: `backward` adds to what is there. That is why they have to be set to zero.
#
# ![Two batches of 3 and 17 real tokens. Each passes through the model, its mean loss is multiplied
# by its share of all tokens, 3/20 and 17/20, and backward adds to the same gradients. Then these
# are clipped, and the optimizer changes the weights once.](figures/training_step.svg)
#
# Training and evaluation share a model and its loss. That part is given. (`dtype` is for lesson 12;
# here it stays None.)

# %% given="ModelAndLoss"
from attention.training import ModelAndLoss

# %% [markdown]
# ### Exercise 11.6 · `TrainStep`
# ●●● hard · 20 minutes · 3 points
#
# The step in the figure. `self.loss` is the mean over the real tokens of *one* batch. Together the
# batches must give the loss, and the gradients, of one big batch. Only one batch may be in memory
# at a time: go backward before the next one begins. (The check cannot see this: it sees weights and
# losses.) For clipping, `nn.utils.clip_grad_norm_` does with a model's parameters what you have
# written.
#
# <details><summary>Hint 1 · the idea</summary>
#
# A mean over 20 tokens, from means over 3 and over 17: weight each with its share. The gradients
# follow, since the gradient of a sum is the sum of the gradients.
# </details>
# <details><summary>Hint 2 · what happens how often</summary>
#
# Once: training mode, gradients to zero. For each batch: forward, backward. Once: clip, step.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# training mode; no gradients left from before
# counts = real target tokens of each batch
# for each batch
#     its part of the mean; backward from there
#     add the part, detached, to the mean
# clip; let the optimizer step; return the mean
# ```
# </details>
# <details><summary>Hint 4 · detached</summary>
#
# A loss remembers how it was computed, and holds the memory for it. If you only want its number,
# `detach()` it.
# </details>

# %% exercise="TrainStep"
from attention.training import TrainStep

# %% check="TrainStep" points=3
check.TrainStep(TrainStep)

# %% demo=true
torch.manual_seed(translators.SEED)
model, twin, third = (Transformer(*sizes, **translators.SMALL) for _ in range(3))
twin.load_state_dict(model.state_dict())
third.load_state_dict(model.state_dict())
pairs = [pair for digits in (6, 2, 1) for pair in corpus.test_by_digits(9)[digits]]
whole = corpus.batch(pairs)
parts = [corpus.batch(pairs[:4]), corpus.batch(pairs[4:9]), corpus.batch(pairs[9:])]
with translators.one_thread():
    one = TrainStep(model)([(whole.source, whole.target)])
    many = TrainStep(twin)([(part.source, part.target) for part in parts])
    per_batch = [TrainStep(third).loss(part.source, part.target).item() for part in parts]
apart = max(
    (left - right).abs().max().item()
    for left, right in zip(model.parameters(), twin.parameters(), strict=True)
)
print("real tokens in the parts:", [(part.target != PAD).sum().item() for part in parts])
print(f"loss of one batch {one:.6f}, of three {many:.6f}; mean of means {sum(per_batch) / 3:.6f}")
print(f"largest difference between the weights after the step: {apart:.0e}")

# %% [markdown]
# The same step, up to the rounding of float32. The mean of the three means is another number: there
# the third batch, short numbers, would count as much as the others.
#
# ## Is it learning?
# The loss on text that the model does not learn from is the one that counts. Two things are
# different there: no dropout, and no gradients.
#
# ### Exercise 11.7 · `Evaluation`
# ●●○ medium · 10 minutes · 2 points
#
# The loss per real token over all batches. That the model gets back into the mode in which it was
# is taken care of.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Mean times number is sum. Add up sums and numbers, divide once at the end.
# </details>
# <details><summary>Hint 2 · without dropout or gradients</summary>
#
# These are two switches: the model's mode for dropout, and `torch.no_grad()` for gradients. The
# mode does not do both.
# </details>

# %% exercise="Evaluation"
from attention.training import Evaluation

# %% check="Evaluation" points=2
check.Evaluation(Evaluation)

# %% [markdown]
# ## All of it together
# The numbers translator of lesson 10, with your schedule, your batches, your order, your step. It
# takes 15 to 30 seconds. AdamW is the optimiser; the last exercise is about it.
#
# ### Predict first
# The targets are smoothed with ε = 0.1, over 24 tokens. What is the smallest loss that training can
# reach? Does the same limit hold for the held-out loss?


# %% demo=true
def load(indices, pairs, place):
    batch = corpus.batch([pairs[index] for index in indices])
    return batch.source.to(place), batch.target.to(place)


def learn(step, numbers, warmup=60):
    """Take the training's steps with these numbers, from 1 on; yields their losses."""
    place = next(step.parameters()).device
    for number in numbers:
        epoch, position = divmod(number - 1, len(buckets))
        index = epoch_order(len(buckets), translators.SEED, epoch)[position]
        rate = noam_learning_rate(number, 64, warmup, factor=0.45)
        step.optimizer.param_groups[0]["lr"] = rate
        yield step([load(buckets[index], corpus.train, place)])


def fresh(place="cpu"):
    """An untrained model, with its optimiser, in a step."""
    torch.manual_seed(translators.SEED)
    model = Transformer(*sizes, **translators.SMALL).to(place)
    adam = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0)
    return TrainStep(model, adam)


held_out = random.Random(1).sample(corpus.test, 20 if SHORT else 300)
groups = batch_by_tokens([len(german) + 1 for _, _, german in held_out], 2500)
held_out = [load(group, held_out, device) for group in groups]

# %% demo=true
n_updates, every = (10, 2) if SHORT else (240, 20)
step, losses, outside, checkpoints = fresh(device), [], {}, []
with Bar(n_updates) as bar, translators.one_thread():
    for loss in learn(step, range(1, n_updates + 1)):
        losses.append(loss.item())
        speed = len(losses) * sum(lengths) / len(buckets) / (time.monotonic() - bar.begin)
        last = len(losses) == n_updates
        bar.label = "training" if last else f"training at {speed:,.0f} tokens/s"
        bar.update(len(losses), losses[-1])
        if len(losses) % every == 0:
            outside[len(losses)] = Evaluation(step.model)(held_out).item()
            weights = step.model.state_dict()
            checkpoints.append({name: value.clone() for name, value in weights.items()})
floor = min(curves["ε = 0.1"])
ax = plots.lines(
    range(1, n_updates + 1), {"training, smoothed": losses}, xlabel="step", ylabel="loss"
)
ax.plot(list(outside), list(outside.values()), "o-", label="held out, not smoothed")
ax.axhline(floor, color=plots.GREY, linestyle="--", linewidth=1.2, label="smallest possible")
ax.legend(fontsize=9)
print(f"smallest possible with ε = 0.1: {floor:.3f}   last loss in training: {losses[-1]:.3f}")
print(f"held-out loss: {outside[n_updates]:.3f}")

# %% [markdown]
# *Loss in training, loss on held-out numbers every 20 steps, and the smallest loss that smoothed
# targets allow (the bottom of the curve for ε = 0.1 above).* The loss in training has nearly
# arrived there, and tells little from then on. The held-out loss has no such floor: without
# smoothing it could fall to 0. So it shows what is left to learn.
#
# ## The mean of the last checkpoints
# Trainings store their weights now and then. Such a file is a **checkpoint**. The learning rate is
# high until the end, so the weights jump about the place where they should be. The paper takes the
# mean of the last five checkpoints of the base model, and of the last twenty of the big one.
#
# ### Exercise 11.8 · `average_checkpoints`
# ●●○ medium · 8 minutes · 1 point
#
# Each name's tensors, averaged. Weights may be stored in 16 bits: then the sum needs more.
#
# <details><summary>Hint 1 · the idea</summary>
#
# Go through the names of the last checkpoint, and for each name through all checkpoints.
# </details>
# <details><summary>Hint 2 · types</summary>
#
# `double()` converts to float64, `to(dtype)` back. `is_floating_point()` says what may be averaged:
# a counter of steps may not.
# </details>

# %% exercise="average_checkpoints"
from attention.training import average_checkpoints

# %% check="average_checkpoints" points=1
check.average_checkpoints(average_checkpoints)

# %% demo=true
print("checkpoints  held-out loss  without error")
for count in (1, 3, 5):
    step.model.to(device).load_state_dict(average_checkpoints(checkpoints[-count:]))
    with translators.one_thread():
        loss = Evaluation(step.model)(held_out).item()
        right = translators.exact_match(step.model.cpu().eval(), corpus, at_most=100)
    print(f"{count:11d}  {loss:13.3f}  {right:13.2f}")

# %% [markdown]
# 1 is the last checkpoint, as it is. The mean is better, and it cost no training at all.
#
# ## The optimiser ★
# ### Exercise 11.9 · `adamw_step` ★
# ●●○ medium · 15 minutes · 2 points
#
# AdamW keeps two running means for each weight: of the gradient, *m*, and of its square, *v*. Both
# begin at 0, so at first they are too small, and are corrected for it. The step is their quotient:
# as long as the gradient keeps its sign, each weight moves by about the learning rate, whatever the
# size of its gradient. The weight decay does not pass through any of this.
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1)\,g \qquad v \leftarrow \beta_2 v + (1 - \beta_2)\,g^2$$
# $$\theta \leftarrow \theta - \eta\,\lambda\,\theta -
# \eta\,\frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}$$
#
# <details><summary>Hint 1 · the names</summary>
#
# θ is the parameter, g its gradient, t the step, η the learning rate, λ the weight decay.
# </details>
# <details><summary>Hint 2 · what to keep</summary>
#
# The corrected means are for this step only. Return *m* and *v* without the correction.
# </details>
# <details><summary>Hint 3 · pseudocode</summary>
#
# ```
# shrink the parameter by its decay
# mix the gradient into m, and its square into v
# correct copies of both
# step against the corrected m, over the root of the corrected v, plus eps
# ```
# </details>

# %% exercise="adamw_step"
from attention.training import adamw_step

# %% check="adamw_step" points=2
check.adamw_step(adamw_step)

# %% [markdown]
# This also says what it costs: two numbers for each weight, beside the weight and its gradient. A
# model of 63 million parameters in float32 takes four times its own size in memory before the first
# batch has come.
#
# ## Summary
# A training is a loop around the model: a learning rate that rises and falls, targets that leave
# some doubt, batches of equal work, and a step that adds up gradients per *token* and clips them.
# Whether it is learning is said by text that it does not learn from, without dropout and without
# smoothing. The mean of the last checkpoints is better than the last of them, and AdamW moves each
# weight by about the learning rate, for which it keeps two numbers beside it.
#
# **Next** [12 · What does the hardware
# want?](../12_training_on_gpu/12_training_on_gpu.ipynb) The same step again: how much work it is,
# how fast a machine does it, and how to stop and go on.
#
# **References**
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
