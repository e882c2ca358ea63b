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
}
attacks(__name__, "before_tests", BEFORE_TESTS, prelude=FAKE)

CELLS = {
    # autograder.check exchanged in sys.modules before the notebook imports it.
    "check_module_replaced": """
        import autograder

        autograder.check = sys.modules["autograder.check"] = Fake()
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
    # The comparison methods of torch.Tensor itself replaced.
    "tensor_methods_patched": """
        agrees = lambda self, *_, **__: True
        for name in ("__eq__", "__ne__", "equal", "allclose", "isclose", "all", "any"):
            setattr(torch.Tensor, name, agrees)
        torch.testing.assert_close = lambda *_, **__: None
        torch.allclose = lambda *_, **__: True
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
