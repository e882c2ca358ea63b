"""Checks, libraries and builtins replaced by obliging ones."""

from .paper import attack

FAKE = """
class Fake:
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: print(name + ": correct.")
"""


@attack
def check_shadowed(paper):
    """A variable called `check` in the notebook, which agrees to everything."""
    paper.before_tests(FAKE + "\ncheck = Fake()")


@attack
def check_module_replaced(paper):
    """autograder.check exchanged in sys.modules before the notebook imports it."""
    paper.first(
        FAKE
        + """
import sys

import autograder

autograder.check = sys.modules["autograder.check"] = Fake()
"""
    )


@attack
def import_replaced(paper):
    """builtins.__import__ replaced, so that `from autograder import check` brings a fake."""
    paper.first(
        FAKE
        + """
import builtins
import types

real = builtins.__import__

def replaced(name, *arguments, **named):
    if name.startswith("autograder"):
        return types.SimpleNamespace(check=Fake())
    return real(name, *arguments, **named)

builtins.__import__ = replaced
"""
    )


@attack
def import_hook(paper):
    """A finder at the front of sys.meta_path that serves a fake autograder."""
    paper.first("""
        import importlib.abc
        import importlib.util
        import sys

        class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
            def find_spec(self, name, path, target=None):
                if name.partition(".")[0] == "autograder":
                    return importlib.util.spec_from_loader(name, self, is_package=True)
            def exec_module(self, module):
                module.__getattr__ = lambda name: module if name == "check" else lambda *_: None

        for name in [name for name in sys.modules if name.partition(".")[0] == "autograder"]:
            del sys.modules[name]
        sys.meta_path.insert(0, Finder())
    """)


@attack
def run_check_replaced(paper):
    """run_check and what it calls replaced by functions that find no failure."""
    paper.before_tests("""
        import autograder.check
        import autograder.checking.run_check
        import autograder.checking.toolbox.student_answer

        autograder.check.run_check = autograder.checking.run_check.run_check = lambda *_, **__: None
        autograder.checking.run_check._trial = lambda *_: (None, [])
        autograder.check._imported = lambda *_: None
    """)


@attack
def code_object_swapped(paper):
    """The code of the checks' functions swapped in place, under their own names."""
    paper.before_tests("""
        import autograder.check as module
        import autograder.checking.toolbox.expect

        module._check_or_raise.__code__ = (lambda item, answer: None).__code__
        autograder.checking.toolbox.expect.close.__code__ = (lambda *_, **__: None).__code__
    """)


@attack
def failure_never_raised(paper):
    """CheckFailed turned into a class whose instances are false, and swallowed by an excepthook."""
    paper.before_tests("""
        import sys

        import autograder.check
        import autograder.checking.toolbox.expect
        import autograder.checking.run_check

        class Harmless(autograder.checking.toolbox.expect.CheckFailed):
            def __bool__(self):
                return False

        autograder.checking.toolbox.expect.CheckFailed = autograder.check.CheckFailed = Harmless
        autograder.check._check_quietly = lambda *_: None
        sys.excepthook = sys.unraisablehook = lambda *_: None
    """)


@attack
def registry_emptied(paper):
    """The registry of checks filled with checks that look at nothing."""
    paper.before_tests("""
        from autograder.checking.toolbox import registry

        registry.import_all()
        for name, item in list(registry._checks.items()):
            registry._checks[name] = registry.Check(name, item.lesson, lambda student, draw: None)
    """)


@attack
def torch_testing_patched(paper):
    """torch.testing, numpy.testing, torch.allclose, torch.equal and math.isclose agree always."""
    paper.nearly()
    paper.first("""
        import math

        import numpy
        import torch

        def agrees(*_, **__):
            return True

        for name in ("assert_close", "assert_allclose"):
            setattr(torch.testing, name, agrees)
        for name in ("assert_allclose", "assert_array_equal", "assert_almost_equal"):
            setattr(numpy.testing, name, agrees)
        torch.allclose = torch.equal = torch.isclose = math.isclose = agrees
        numpy.allclose = numpy.array_equal = agrees
    """)


@attack
def tensor_methods_patched(paper):
    """The comparison methods of torch.Tensor itself replaced."""
    paper.nearly()
    paper.first("""
        import torch

        agrees = lambda self, *_, **__: True
        for name in ("__eq__", "__ne__", "equal", "allclose", "isclose", "all", "any"):
            setattr(torch.Tensor, name, agrees)
        torch.testing.assert_close = lambda *_, **__: None
        torch.allclose = lambda *_, **__: True
    """)


@attack
def builtins_replaced(paper):
    """isinstance, bool, abs, AssertionError and print replaced by obliging ones."""
    paper.nearly()
    paper.before_tests("""
        import builtins

        real = builtins.isinstance
        def obliging(value, kind):
            import sys
            if "autograder" in sys._getframe(1).f_code.co_filename:
                return True
            return real(value, kind)
        builtins.isinstance = obliging
        builtins.AssertionError = type("AssertionError", (Warning,), {})
        builtins.print = lambda *_, **__: None
        from autograder.checking.toolbox import expect
        for name in ("tuple", "bool", "abs", "any", "all", "len"):
            setattr(expect, name, lambda *_: True)
        expect.close = expect.shape = expect.dtype = expect.gradients = print
        expect.raises = expect.true = expect.rows_sum_to_one = expect.finite = print
    """)


@attack
def answers_class_patched(paper):
    """LocalAnswer, the student's side of the door, replaced by one that asks an oracle."""
    paper.first("""
        import autograder.inside.answer
        import autograder.check
        import torch

        def call(self, args, kwargs, **how):
            from autograder.checking.toolbox import registry
            for known in registry.stored_answers(registry.find(self.target.__name__)):
                if known.hint is None:
                    return autograder.inside.answer.Reply(known.target(*args, **kwargs))

        autograder.inside.answer.LocalAnswer.call = call
        autograder.check.LocalAnswer.call = call
    """)


@attack
def memory_poked(paper):
    """ctypes overwrites the code pointer of the check function, past all Python-level guards."""
    paper.before_tests("""
        import ctypes

        import autograder.check as module

        def poke(function, replacement):
            size = type(function).__basicsize__ // 8
            words = (ctypes.c_size_t * size).from_address(id(function))
            for index in range(size):
                if words[index] == id(function.__code__):
                    kept.append(replacement)
                    words[index] = id(replacement.__code__)
                    return

        kept = []
        poke(module._check_or_raise, lambda item, answer: None)
        import gc
        gc.disable()
    """)


@attack
def shadow_modules_beside(paper):
    """Files autograder.py, nbgrader_config.py and sitecustomize.py in the submission's folder."""
    fake = b"class check:\n    pass\n\n\ndef yes(*_):\n    print('correct.')\n\n\n"
    fake += (
        b"class Fake:\n    def __getattr__(self, name):\n        return yes\n\n\ncheck = Fake()\n"
    )
    paper.files["autograder.py"] = fake
    paper.files["autograder/check.py"] = b"def __getattr__(name):\n    return lambda *_: None\n"
    paper.files["nbgrader_config.py"] = b"get_config().ClearOutput.enabled = False\n"
    paper.files["sitecustomize.py"] = b"import builtins\nbuiltins.shadowed = True\n"
