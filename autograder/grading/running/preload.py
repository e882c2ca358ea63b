"""What the parent of all workers imports, once for them all."""

import gc
import importlib

gc.disable()  # imports leave little garbage: to look for it took a sixth of their time
importlib.import_module("autograder.grading.execution.execute")
gc.freeze()  # a collection in a worker would copy every page it shares
gc.enable()
