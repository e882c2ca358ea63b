"""Checks, libraries and builtins replaced by obliging ones."""

from .paper import attack, attacks

FAKE = """
class Fake:
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: print(name + ": correct.")
"""

BEFORE_TESTS = {
    # A variable called `check` in the notebook, which agrees to everything.
    "check_shadowed": "check = Fake()",
    # run_check and what it calls replaced by functions that find no failure.
    "run_check_replaced": """
        import autograder.check
        import autograder.checking.run_check
        import autograder.checking.toolbox.student_answer

        autograder.check.run_check = autograder.checking.run_check.run_check = lambda *_, **__: None
        autograder.checking.run_check._trial = lambda *_: (None, [])
        autograder.check._imported = lambda *_: None
    """,
    # The code of the checks' functions swapped in place, under their own names.
    "code_object_swapped": """
        import autograder.check as module
        import autograder.checking.toolbox.expect

        module._check_or_raise.__code__ = (lambda item, answer: None).__code__
        autograder.checking.toolbox.expect.close.__code__ = (lambda *_, **__: None).__code__
    """,
    # CheckFailed turned into a class whose instances are false, and swallowed by an
    # excepthook.
    "failure_never_raised": """
        import autograder.check
        import autograder.checking.toolbox.expect
        import autograder.checking.run_check

        class Harmless(autograder.checking.toolbox.expect.CheckFailed):
            def __bool__(self):
                return False

        autograder.checking.toolbox.expect.CheckFailed = autograder.check.CheckFailed = Harmless
        autograder.check._check_quietly = lambda *_: None
        sys.excepthook = sys.unraisablehook = lambda *_: None
    """,
    # The registry of checks filled with checks that look at nothing.
    "registry_emptied": """
        from autograder.checking.toolbox import registry

        registry.import_all()
        for name, item in list(registry._checks.items()):
            registry._checks[name] = registry.Check(name, item.lesson, lambda student, draw: None)
    """,
    # ctypes overwrites the code pointer of the check function, past all Python-level guards.
    "memory_poked": """
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
        gc.disable()
    """,
}
attacks(__name__, "before_tests", BEFORE_TESTS, prelude=FAKE)

CELLS = {
    # autograder.check exchanged in sys.modules before the notebook imports it.
    "check_module_replaced": """
        import autograder

        autograder.check = sys.modules["autograder.check"] = Fake()
    """,
    # builtins.__import__ replaced, so that `from autograder import check` brings a fake.
    "import_replaced": """
        import builtins
        import types

        real = builtins.__import__

        def replaced(name, *arguments, **named):
            if name.startswith("autograder"):
                return types.SimpleNamespace(check=Fake())
            return real(name, *arguments, **named)

        builtins.__import__ = replaced
    """,
    # A finder at the front of sys.meta_path that serves a fake autograder.
    "import_hook": """
        import importlib.abc
        import importlib.util

        class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
            def find_spec(self, name, path, target=None):
                if name.partition(".")[0] == "autograder":
                    return importlib.util.spec_from_loader(name, self, is_package=True)
            def exec_module(self, module):
                module.__getattr__ = lambda name: module if name == "check" else lambda *_: None

        for name in [name for name in sys.modules if name.partition(".")[0] == "autograder"]:
            del sys.modules[name]
        sys.meta_path.insert(0, Finder())
    """,
    # LocalAnswer, the student's side of the door, replaced by one that asks an oracle.
    "answers_class_patched": """
        import autograder.inside.answer
        import autograder.check

        def call(self, args, kwargs, **how):
            from autograder.checking.toolbox import registry
            for known in registry.stored_answers(registry.find(self.target.__name__)):
                if known.hint is None:
                    return autograder.inside.answer.Reply(known.target(*args, **kwargs))

        autograder.inside.answer.LocalAnswer.call = call
        autograder.check.LocalAnswer.call = call
    """,
}
attacks(__name__, "first", CELLS, prelude=FAKE)

NEARLY = {
    # torch.testing, numpy.testing, torch.allclose, torch.equal and math.isclose agree always.
    "torch_testing_patched": """
        import math

        import numpy

        def agrees(*_, **__):
            return True

        for name in ("assert_close", "assert_allclose"):
            setattr(torch.testing, name, agrees)
        for name in ("assert_allclose", "assert_array_equal", "assert_almost_equal"):
            setattr(numpy.testing, name, agrees)
        torch.allclose = torch.equal = math.isclose = agrees
        torch.isclose = lambda one, *_, **__: torch.ones_like(one, dtype=torch.bool)
        numpy.allclose = numpy.array_equal = agrees
    """,
    # The comparison methods of torch.Tensor itself replaced.
    "tensor_methods_patched": """
        agrees = lambda self, *_, **__: True
        for name in ("__eq__", "__ne__", "equal", "allclose", "isclose", "all", "any"):
            setattr(torch.Tensor, name, agrees)
        torch.testing.assert_close = lambda *_, **__: None
        torch.allclose = lambda *_, **__: True
    """,
    # isinstance, bool, abs, AssertionError and print replaced by obliging ones.
    "builtins_replaced": """
        # %% before_tests
        import builtins

        real = builtins.isinstance
        def obliging(value, kind):
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
    """,
}
attacks(__name__, "nearly", NEARLY, prelude=FAKE)


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
