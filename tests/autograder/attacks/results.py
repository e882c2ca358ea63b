"""Results that lie about themselves, or that nobody can hold."""

from .paper import KERNELS, attack


@attack
def equal_to_everything(paper):
    """An object that equals everything, has every attribute and converts to anything."""
    paper.first("""
        class Agreeable:
            def __eq__(self, other): return True
            def __ne__(self, other): return False
            def __lt__(self, other): return True
            __le__ = __gt__ = __ge__ = __lt__
            def __hash__(self): return 0
            def __bool__(self): return True
            def __float__(self): return 1.0
            def __getattr__(self, name): return self
            def __call__(self, *_, **__): return self
            def __getitem__(self, key): return self
            def __iter__(self): return iter([self])
            @property
            def __class__(self):
                import torch
                return torch.Tensor
    """)
    paper.answer("return Agreeable()")


@attack
def torch_function_overridden(paper):
    """A tensor subclass whose __torch_function__ makes every comparison agree."""
    paper.first("""
        import torch

        class Agreeable(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                name = getattr(function, "__name__", "")
                if name in ("allclose", "equal", "isclose", "eq", "all", "__eq__", "assert_close"):
                    return torch.tensor(True)
                return super().__torch_function__(function, types, args, kwargs or {})
    """)
    paper.nearly()
    for cell in paper.answers:
        cell.source = cell.source.replace("return honest", "return Agreeable.imitate(honest")
        cell.source = cell.source.replace(" + 1", " + 1)")
    paper.first("""
        def imitate(value):
            return value.as_subclass(Agreeable)
    """)
    paper.before_tests("Agreeable.imitate = staticmethod(imitate)")


@attack
def methods_on_the_instance(paper):
    """A plain tensor whose own attributes detach, clone and tolist lie."""
    paper.nearly()
    for cell in paper.answers:
        cell.source = cell.source.replace("return honest", "result = honest")
        cell.source += "\n" + "\n".join(
            "    " + line
            for line in (
                "class Agrees:",
                "    def __eq__(self, other): return True",
                "    def __getattr__(self, name): return lambda *_, **__: self",
                "for method in ('detach', 'clone', 'cpu', 'tolist', 'item', 'double'):",
                "    setattr(result, method, lambda *_, **__: Agrees())",
                "return result",
            )
        )


@attack
def answers_by_subclass(paper):
    """Subclasses of float, list, str and dict with their own idea of equality."""
    paper.answer("""
        class Number(float):
            def __eq__(self, other): return True
            def __sub__(self, other): return 0.0
            __rsub__ = __sub__
            shape = (4,)
            dtype = torch.float64
        class Row(list):
            shape = property(lambda self: (2, 2))
            def __eq__(self, other): return True
        return Row([Number(1.0)])
    """)


@attack
def zeroes_its_inputs(paper):
    """Sets its inputs to zero in place, so that everything computed from them is zero as well."""
    paper.answer("""
        for tensor in inputs:
            if isinstance(tensor, torch.Tensor):
                tensor.detach().zero_()
        return torch.zeros_like(inputs[-1])[0] if len(inputs) < 2 else inputs[0]
    """)
    paper.before_tests("""
        import autograder.answer
        autograder.answer._modified = lambda *_: []
    """)


@attack
def storage_shared_and_changed_later(paper):
    """A thread goes on changing the returned tensor while the check looks at it."""
    paper.first("""
        import threading
        import time
        import torch

        returned = []
        def keep_changing():
            while True:
                for tensor in returned[-5:]:
                    with torch.no_grad():
                        tensor.data.uniform_(0, 1)
                time.sleep(0)
        threading.Thread(target=keep_changing, daemon=True).start()
    """)
    paper.nearly()
    for cell in paper.answers:
        cell.source = cell.source.replace("return honest", "result = honest")
        cell.source += "\n    returned.append(result)\n    return result"


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
    """Meta, sparse, nested, quantised, conjugated, complex and wrapped tensors, one after another."""
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
            from autograder import expect
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


@attack(lesson=KERNELS)
def module_that_lies(paper):
    """A module whose named_parameters, train, __call__ and state are all forged."""
    cell = next(cell for cell in paper.answers if "LearnedBandwidth" in cell.source)
    cell.source = """
import torch
from torch import nn


class Liar(type(nn.Module)):
    def __instancecheck__(self, other):
        return True

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


class LearnedBandwidth(nn.Module, metaclass=Liar):
    def __init__(self, bandwidth):
        super().__init__()
        self.log_bandwidth = nn.Parameter(torch.tensor(float(bandwidth)).log())

    def named_parameters(self, *_, **__):
        yield "log_bandwidth", nn.Parameter(self.log_bandwidth.detach().clone())
        yield "log_bandwidth", self.log_bandwidth

    def train(self, mode=True):
        raise SystemExit(0)

    def __call__(self, x, *inputs):
        return x.detach() * 0
"""


@attack(lesson=KERNELS)
def module_made_of_anything(paper):
    """A class that builds itself from whatever is asked: every attribute, every call, itself."""
    for cell in paper.answers:
        name = cell.metadata.nbgrader.grade_id
        cell.source = f"""
class Anything:
    def __new__(cls, *_, **__):
        return object.__new__(cls)
    def __call__(self, *_, **__):
        return self
    def __getattr__(self, name):
        return self
    def __iter__(self):
        return iter([self])
    def __eq__(self, other):
        return True
    keys = values = items = __call__

{name} = Anything()
"""
