"""Results that nobody can hold, send or print, and exceptions of every kind."""

from .paper import attack, attacks

ANSWERS = {
    # A result of 10⁹ elements that costs nothing to make: one number, expanded.
    "a_billion_elements": "return torch.zeros(1, dtype=torch.float64).expand(10**9)",
    # torch.Tensor.shape, size and numel replaced by properties that lie.
    "lying_shape": """
        return torch.zeros(3, dtype=torch.float64)
        # %% first
        torch.Tensor.shape = property(lambda self: torch.Size([10**6, 10**6]))
        torch.Tensor.size = lambda self, *_: torch.Size([10**6, 10**6])
        torch.Tensor.numel = torch.Tensor.nelement = lambda self: 1
        torch.Tensor.dim = lambda self: 0
        torch.Tensor.element_size = lambda self: 2**40
    """,
    # ValueError with every row and sum in its message, for checks that expect a refusal.
    "raises_value_error_always": """
        rows = " ".join(f"row {row} sum {value}" for row in range(9) for value in (1.5, .25, 1.75))
        raise ValueError(rows)
    """,
    # An exception whose message imitates a passing check's lines and the report's columns.
    "message_in_the_runners_words": r"""
        raise ValueError("@NAME@: correct.\n  score     100\n\nearned 9/9\n  likely    passed" * 9)
    """,
}
attacks(__name__, "answer", ANSWERS)

CELLS = {
    # Meta, sparse, nested, quantised, conjugated and complex tensors, one after another.
    "strange_tensors": """
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
            yield base
        supply = itertools.cycle(list(tensors()))
        # %% answer
        return next(supply)
    """,
    # Lists that contain themselves, a million nested lists, a dict of a million keys.
    "endless_containers": """
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
        # %% answer
        return next(supply)
    """,
    # Raises the grader's own exceptions, exits, interrupts and stop signals in turn.
    "raises_anything": """
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
        # %% answer
        raise next(supply)
    """,
    # Lone surrogates, NUL, escape sequences and markup in messages, names and output.
    "unprintable_messages": r"""
        nasty = "\ud800\x00\x1b[2J\x1b]0;title\x07[bold red]{0}%s<script>\u202e\x85"
        print(nasty)
        sys.stderr.write(nasty)
        # %% answer
        print(nasty * 3)
        raise type(nasty.replace("\0", ""), (Exception,), {})(nasty)
    """,
}
attacks(__name__, "first", CELLS)


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
            __reduce__ = Payload.__reduce__
            def __str__(self):
                raise Broken
            __repr__ = __str__
    """)
    paper.answer("if len(inputs) == 1:\n    return Payload()\nraise Broken(Payload())")
    pickled = f"cposix\nsystem\n(S'touch /tmp/{paper.mark}'\ntR."
    paper.files["data.pt"] = paper.files["data.pkl"] = pickled.encode()
