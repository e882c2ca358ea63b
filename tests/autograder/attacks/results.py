"""Results that lie about themselves: objects, tensors and modules that agree to everything."""

from .paper import KERNELS, attack, attacks

CELLS = {
    # A tensor subclass whose __torch_function__ makes every comparison agree.
    "torch_function_overridden": """
        class Agreeable(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                name = getattr(function, "__name__", "")
                if name in ("allclose", "equal", "isclose", "eq", "all", "__eq__", "assert_close"):
                    return torch.tensor(True)
                return super().__torch_function__(function, types, args, kwargs or {})

        def spoilt(result):
            return result.as_subclass(Agreeable)
        # %% nearly
    """,
    # A thread goes on changing the returned tensor while the check looks at it.
    "storage_shared_and_changed_later": """
        returned = []

        def keep_changing():
            while True:
                for tensor in returned[-5:]:
                    with torch.no_grad():
                        tensor.data.uniform_(0, 1)
                time.sleep(0)

        def spoilt(result):
            returned.append(result)
            return result
        threading.Thread(target=keep_changing, daemon=True).start()
        # %% nearly
    """,
    # An object that equals everything, has every attribute and converts to anything.
    "equal_to_everything": """
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
                return torch.Tensor
        # %% answer
        return Agreeable()
    """,
}
attacks(__name__, "first", CELLS)

ANSWERS = {
    # Sets its inputs to zero in place, so that everything computed from them is zero as well.
    "zeroes_its_inputs": """
        for tensor in inputs:
            if isinstance(tensor, torch.Tensor):
                tensor.detach().zero_()
        return torch.zeros_like(inputs[-1])[0] if len(inputs) < 2 else inputs[0]
        # %% before_tests
        import autograder.inside.answer
        autograder.inside.answer._modified = lambda *_: []
    """,
}
attacks(__name__, "answer", ANSWERS)


@attack(lesson=KERNELS)
def module_that_lies(paper):
    """A module with a wrong parameter whose named_parameters, train and __call__ are forged."""
    cell = next(cell for cell in paper.answers if "LearnedBandwidth" in cell.source)
    cell.source = """
import torch
from torch import nn

class Liar(type(nn.Module)):
    def __instancecheck__(self, other): return True
    def __eq__(self, other): return True
    def __hash__(self): return 0

class LearnedBandwidth(nn.Module, metaclass=Liar):
    def __init__(self, bandwidth):
        super().__init__()
        self.log_bandwidth = nn.Parameter(torch.tensor(float(bandwidth)))

    def named_parameters(self, *_, **__):
        yield "log_bandwidth", nn.Parameter(self.log_bandwidth.detach().clone())
        yield "log_bandwidth", self.log_bandwidth

    def train(self, mode=True):
        raise SystemExit(0)

    def __call__(self, x, *inputs):
        return x.detach() * 0
"""
