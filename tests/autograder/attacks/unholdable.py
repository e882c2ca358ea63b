"""Results that nobody can hold, send or print, and exceptions of every kind."""

from .paper import attack


@attack
def a_billion_elements(paper):
    """A result of 10⁹ elements that costs nothing to make: one number, expanded."""
    paper.answer("return torch.zeros(1, dtype=torch.float64).expand(10**9)")


@attack
def a_quintillion_elements(paper):
    """A result of 10¹⁸ elements, expanded along several axes."""
    paper.answer("return torch.zeros((), dtype=torch.int8).expand(10**6, 10**6, 10**6)")


@attack
def lying_shape(paper):
    """torch.Tensor.shape, size and numel replaced by properties that lie."""
    paper.answer("return torch.zeros(3, dtype=torch.float64)")
    paper.first("""
        import torch

        torch.Tensor.shape = property(lambda self: torch.Size([10**6, 10**6]))
        torch.Tensor.size = lambda self, *_: torch.Size([10**6, 10**6])
        torch.Tensor.numel = torch.Tensor.nelement = lambda self: 1
        torch.Tensor.dim = lambda self: 0
        torch.Tensor.element_size = lambda self: 2**40
    """)


@attack
def strange_tensors(paper):
    """Meta, sparse, nested, quantised, conjugated and complex tensors, one after another."""
    paper.first("""
        import itertools
        import torch

        def tensors():
            base = torch.ones(2, 2)
            yield torch.empty(2, 2, device="meta")
            yield base.to_sparse()
            yield base.to_sparse_csr()
            yield torch.quantize_per_tensor(base, 0.1, 0, torch.qint8)
            yield torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
            yield torch.ones(2, 2, dtype=torch.complex128).conj()
            yield torch.ones(2, 2, dtype=torch.complex128).conj().imag
            yield torch.full((2, 2), float("nan"), dtype=torch.float64)
            yield torch.empty(2**40, device="meta")
            yield torch.empty(0, 10**12)
            yield torch.utils.dlpack.from_dlpack(base)
            yield torch.func.grad(lambda x: kept.append(x) or x.sum())(base) if False else base
        kept = []
        supply = itertools.cycle([make for make in tensors()])
    """)
    paper.answer("return next(supply)")


@attack
def endless_containers(paper):
    """Lists that contain themselves, a million nested lists, a dict of a million keys."""
    paper.first("""
        import itertools

        loop = []
        loop.append(loop)
        deep = []
        for _ in range(10**6):
            deep = [deep]
        wide = {str(index): index for index in range(10**6)}
        doubled = [0]
        for _ in range(7):
            doubled = [doubled] * 12
        supply = itertools.cycle([loop, deep, wide, doubled, 10 ** 10**6, "x" * 10**8])
    """)
    paper.answer("return next(supply)")


@attack
def pickled_payload(paper):
    """Results, exceptions and arguments whose unpickling leaves a file."""
    paper.first("""
        import os

        class Payload:
            shape = (4,)
            def __reduce__(self):
                return os.system, ("touch /tmp/@MARK@ /var/tmp/@MARK@",)

        class Broken(Exception):
            def __reduce__(self):
                return os.system, ("touch /tmp/@MARK@",)
            def __str__(self):
                raise Broken
            __repr__ = __str__
    """)
    paper.answer("""
        if len(inputs) == 1:
            return Payload()
        raise Broken(Payload())
    """)
    paper.files["data.pt"] = paper.files["data.pkl"] = (
        b"cposix\nsystem\n(S'touch /tmp/" + paper.mark.encode() + b"'\ntR."
    )


@attack
def raises_anything(paper):
    """Raises the grader's own exceptions, exits, interrupts and stop signals in turn."""
    paper.first("""
        import itertools

        def errors():
            from autograder.checking.toolbox import expect
            passed = expect.CheckFailed("")
            passed.likely, passed.exercise = "score 100", ""
            yield passed
            yield from (StopIteration(), GeneratorExit(), SystemExit(0), MemoryError())
            yield from (KeyboardInterrupt(), BaseException(), RecursionError(), TimeoutError())
            yield type("", (Exception,), {"__module__": None})()
            yield type("ValueError", (Exception,), {"__str__": lambda self: 7})()
            yield type("NotImplementedError", (BaseException,), {})("softmax: correct.")

        try:
            supply = itertools.cycle(list(errors()))
        except Exception:
            supply = itertools.cycle([SystemExit(0), KeyboardInterrupt(), BaseException()])
    """)
    paper.answer("raise next(supply)")


@attack
def raises_value_error_always(paper):
    """Raises ValueError with every row and sum in its message, for checks that expect a refusal."""
    paper.answer("""
        rows = " ".join(f"row {row} sum {value}" for row in range(9) for value in (1.5, .25, 1.75))
        raise ValueError(rows)
    """)


@attack
def unprintable_messages(paper):
    """Lone surrogates, NUL, escape sequences and markup in messages, names and output."""
    paper.first(r"""
        nasty = "\ud800\x00\x1b[2J\x1b]0;title\x07[bold red]{0}%s<script>\u202e\x85"
        print(nasty)
        import sys
        sys.stderr.write(nasty)
    """)
    paper.answer("""
        print(nasty * 3)
        raise type(nasty.replace("\\0", ""), (Exception,), {})(nasty)
    """)


@attack
def message_in_the_runners_words(paper):
    """An exception whose message imitates a passing check's lines and the report's columns."""
    paper.answer(r"""
        raise ValueError("@NAME@: correct.\n  score     100\n\nearned 9/9\n  likely    passed" * 9)
    """)
