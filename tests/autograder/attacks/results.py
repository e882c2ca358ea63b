"""Results that lie about themselves: objects, tensors and modules that agree to everything."""

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
        import autograder.inside.answer
        autograder.inside.answer._modified = lambda *_: []
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


@attack(lesson=KERNELS)
def module_that_lies(paper):
    """A module with a wrong parameter whose named_parameters, train and __call__ are forged."""
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
        self.log_bandwidth = nn.Parameter(torch.tensor(float(bandwidth)))

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


@attack(stock=False, is_right=True)
def gradients_in_one_tensor(paper):
    """Right answers, but the gradients arrive as one tensor of four million rows."""
    _solved_with_other_gradients(paper, "({}, torch.zeros(2**22, 0))")


@attack(lesson=KERNELS, stock=False, is_right=True)
def gradients_of_a_module_in_one_tensor(paper):
    """The same with a module, whose gradient by name is no tensor either."""
    _solved_with_other_gradients(paper, "({'log_bandwidth': [0.0]}, torch.zeros(2**22, 1))")


@attack(lesson=KERNELS, stock=False)
def many_rows_of_nothing(paper):
    """A right answer until rows are summed: then a tensor of no numbers whose sums take 512 MiB."""
    paper.first("from autograder import answer\nanswer.plain = lambda value: value")
    cell = next(cell for cell in paper.answers if "def attention_weights(" in cell.source)
    cell.source = paper.right["attention_weights"].replace("def attention_weights", "def honest")
    cell.source += """


def attention_weights(similarity):
    return honest(similarity) if (similarity > 0).all() else torch.zeros(2**26, 0)
"""


def _solved_with_other_gradients(paper, gradients):
    paper.notebook = paper.solved
    for cell in paper.answers:
        if "def break_" in cell.source:
            cell.source = ""  # it needs no gradients, so it would earn its point by right
    paper.first(f"""
        import torch
        from autograder.inside import answer

        answer.LocalAnswer.gradients = lambda *_: answer.Reply({gradients})
    """)
