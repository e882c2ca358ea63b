"""A student's text as fragments that outlast renaming, other comments and another layout."""

import ast
import builtins
import io
import keyword
import tokenize
from typing import NamedTuple

LENGTH = 8  # tokens of a fragment
LEAST_WORDS = 3  # of a comment: "# mask" says nothing
KEPT = frozenset(["", *keyword.kwlist, *dir(builtins)])
DROPPED = (tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER, tokenize.INDENT, tokenize.DEDENT)
Fragment = tuple[str, ...]


class Fragments(NamedTuple):
    """What a text consists of.

    ``code``      each ``LENGTH`` tokens in a row, the names that it binds itself being all the same
    ``names``     the names that it binds
    ``comments``  its comments of a few words, in small letters
    """

    code: frozenset[Fragment] = frozenset()
    names: frozenset[str] = frozenset()
    comments: frozenset[str] = frozenset()


def of(source: str) -> Fragments:
    """The Fragments of a cell; none of one that is no Python."""
    try:
        tree = ast.parse(source)
        drop_docstrings(tree)
        names = frozenset(map(bound, ast.walk(tree))) - KEPT
        code = _tokens(ast.unparse(tree), names)
        comments = frozenset(_comments(source))
    except (SyntaxError, ValueError, tokenize.TokenError, RecursionError, MemoryError):
        return Fragments()
    rows = range(len(code) - LENGTH + 1)
    return Fragments(frozenset(tuple(code[n : n + LENGTH]) for n in rows), names, comments)


def drop_docstrings(tree: ast.AST) -> None:
    """Take all docstrings out of a tree."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module
    for node in ast.walk(tree):
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]


def bound(node: ast.AST) -> str:
    """The name that this part of a text gives to a thing of its own, or ''."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    return node.arg if isinstance(node, ast.arg) else ""


def _tokens(text: str, names: frozenset[str]) -> list[str]:
    found, before = [], ""
    for word in tokenize.generate_tokens(io.StringIO(text).readline):
        if word.type in DROPPED:
            continue
        own = word.string in names and before != "."  # an attribute is somebody else's name
        found.append("name" if own else "'text'" if word.type == tokenize.STRING else word.string)
        before = word.string
    return found


def _comments(source: str) -> set[str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = (one.string for one in tokens if one.type == tokenize.COMMENT)
    found = (one.lstrip("# ").lower().split() for one in comments)
    return {" ".join(words) for words in found if len(words) >= LEAST_WORDS}
