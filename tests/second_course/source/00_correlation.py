# %% [markdown]
# # 00 · How does a kernel find an edge?
#
# **After this lesson** you can
# - slide a kernel along a signal, and keep what it finds.
#
# **Time** 20 minutes · **Points** 6 · **GPU** not needed

# %%
import torch

from autograder import check

# %% [markdown]
# ## A kernel slides
#
# ### Exercise 00.1 · `correlate`
# ●○○ easy · 5 minutes · 2 points
#
# At each place the kernel is multiplied with what lies below it, and the products are added up.

# %% exercise="correlate"
from convolution.correlation import correlate

# %% check="correlate" points=2
check.correlate(correlate)

# %% [markdown]
# An edge is where the signal changes:

# %% demo=true
print(correlate(torch.tensor([0.0, 0.0, 1.0, 1.0]), torch.tensor([-1.0, 1.0])))

# %% [markdown]
# ### Exercise 00.2 · `correlate_same`
# ●○○ easy · 5 minutes · 2 points
#
# With zeros on both sides, the result has a value for each value of the signal.

# %% exercise="correlate_same"
from convolution.correlation import correlate_same

# %% check="correlate_same" points=2
check.correlate_same(correlate_same)

# %% [markdown]
# ### Exercise 00.3 · `max_pool`
# ●○○ easy · 5 minutes · 2 points
#
# Whether there was an edge matters more than where: keep the largest value of each window.

# %% exercise="max_pool"
from convolution.correlation import max_pool

# %% check="max_pool" points=2
check.max_pool(max_pool)
