"""What an error in PyTorch's or Python's words means, where there is no doubt."""


def meaning(kind: str, message: str) -> str:
    """One or two sentences on an error of this kind, or ''."""
    if "Boolean value of Tensor with more than one value is ambiguous" in message:
        return (
            "`if`, `and`, `or` and `not` need one True or False, and got a tensor of several "
            "elements. Use `&`, `|` and `~` element by element, and `is not None` to ask whether "
            "an argument was given."
        )
    of_none = "NoneType" in message and "callable" not in message
    if of_none and kind in ("TypeError", "AttributeError"):
        return (
            "A value it computes with is None: an argument that was left out or is None, or what "
            "a function returned."
        )
    return ""
