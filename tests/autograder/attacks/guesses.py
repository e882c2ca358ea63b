"""Results without an answer behind them: replayed, echoed, or shared with the arguments."""

from autograder.checking.run_check import run_check
from autograder.inside.answer import AnswerRaised, LocalAnswer, Reply

from .paper import attacks


class Replayed:
    """Stands for an answer and gives the results that were ``recorded`` in another grading."""

    def __init__(self, recorded):
        self._recorded = recorded

    def _next(self, *_, **how):
        nothing = "raised", ["LookupError", "nothing else was recorded"], []
        request, value, modified = next(self._recorded, nothing)  # other stages are asked for, too
        if request == "raised":
            raise AnswerRaised(*value)
        return Reply(value, modified)

    call = gradients = _next

    def build(self, args, kwargs, **how):
        """A module that replays as well."""
        return self

    def parameters(self):
        """The recorded parameters."""
        return self._next().value

    def load(self, values):
        """Nothing is asked for."""

    train = load


class _Recording:
    """An answer that notes what it gives."""

    def __init__(self, answer, record):
        self._answer, self._record = answer, record

    def __getattr__(self, request):
        def ask(*details, **how):
            try:
                found = getattr(self._answer, request)(*details, **how)
            except AnswerRaised as error:
                self._record.append(("raised", [error.kind, error.message], []))
                raise
            if request == "build":
                return _Recording(found, self._record)
            if request in ("call", "gradients"):
                self._record.append((request, found.value, found.modified))
            elif request == "parameters":
                self._record.append((request, found, []))
            return found

        return ask


def recorded(item, answer, seed):
    """What ``answer`` gives where ``item`` is checked with this seed, in the order of requests."""
    record = []
    run_check(item, _Recording(LocalAnswer(answer), record), seed)
    return record


CELLS = {
    # Every tensor that the grader ever sent is kept; the last of each shape is the result.
    "echoes_what_came": """
        from autograder.inside import answer
        from autograder.inside.messages import codec

        seen = []
        receive = codec.Channel.receive

        def collect(value):
            if isinstance(value, torch.Tensor):
                seen.append(value)
            elif isinstance(value, (list, tuple, dict)):
                for one in value.values() if isinstance(value, dict) else value:
                    collect(one)

        def listen(self, *how, **named):
            message = receive(self, *how, **named)
            collect(message)
            return message

        def echo(self, args, kwargs, *cotangent, **how):
            value = seen[-1] if seen else None
            if cotangent:
                value = {}, [one for one in args if isinstance(one, torch.Tensor)]
            return answer.Reply(value, [])

        codec.Channel.receive = listen
        answer.LocalAnswer.call = answer.LocalAnswer.gradients = echo
    """,
    # Results that share memory with the arguments, with strides that show one value often.
    "views_of_the_arguments": """
        # %% answer
        for tensor in inputs:
            if isinstance(tensor, torch.Tensor):
                tensor = tensor.detach()
                if '@NAME@' == 'softmax':
                    return tensor.as_strided(tensor.shape, [0] * tensor.dim())
                return tensor.as_strided(tensor.shape[1:], tensor.stride()[1:])
        return inputs
    """,
}
attacks(__name__, "first", CELLS)
