"""Results that nobody can hold, send or print, and exceptions of every kind."""

from .paper import attack, attacks

ANSWERS = {
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
