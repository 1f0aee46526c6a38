"""Counts constructions that a reader would have to translate, in docstrings, comments, messages and docs."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["RATES", "Prose", "begins_with_a_question", "of_module", "of_page", "texts_by_line"]

_QUESTION = r"(?:What|How|Which|Who|Whether|When|Where)"
RATES = {
    "where": re.compile(r"\bwhere\b", re.IGNORECASE),
    "question": re.compile(rf"(?:^|[.:;!?] ){_QUESTION} [a-z]"),
    "nobody": re.compile(r"\b(?:nobody|whatever|somebody|whoever|anybody)\b", re.IGNORECASE),
    "of": re.compile(r"(?:^|[.:;!?] )Of [a-z]"),
}
"""What is counted in each paragraph: conditional "where", sentences that begin with a question word or with "Of"."""
_FEWEST_WORDS = 4
# A judge's prompt decides what it answers, and a key of JSON is read by others: they stay as they are.
_KEPT = ("What stands between the tags is material", '"untold"')


@dataclass(frozen=True)
class Prose:
    """Paragraphs of one kind: ``docstrings``, ``comments``, ``messages`` or ``docs``."""

    kind: str
    paragraphs: tuple[str, ...]

    @property
    def words(self) -> int:
        """The number of words."""
        return sum(len(paragraph.split()) for paragraph in self.paragraphs)

    def count(self, rate: str) -> int:
        """Return how often one of ``RATES`` occurs."""
        return sum(len(RATES[rate].findall(paragraph)) for paragraph in self.paragraphs)


def of_module(source: str) -> list[Prose]:
    """Return the docstrings, comments and messages of a module."""
    tree = ast.parse(source)
    docstrings = [*_docstrings(tree)]
    known = {id(node) for node in docstrings}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    messages = [str(node.value) for node in texts if id(node) not in known]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [(token.start[0], token.string.lstrip("# ")) for token in tokens if token.type == tokenize.COMMENT]
    return [
        _prose("docstrings", (str(node.value) for node in docstrings)),
        _prose("comments", _joined(comments)),
        _prose("messages", (text for text in messages if len(text.split()) >= _FEWEST_WORDS)),
    ]


def of_page(text: str) -> Prose:
    """Return the prose of a Markdown page: all but its code blocks and tables, a link as its text."""
    text = re.sub(r"(?ms)^[ ]*(`{3,}|~{3,}).*?^[ ]*\1[ ]*$", "", text)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("|", "#", "    "))]
    return _prose("docs", [re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", "\n".join(lines))])


def begins_with_a_question(source: str) -> bool:
    """Tell whether a module's docstring begins with a question word."""
    return re.match(rf"{_QUESTION}\b", ast.get_docstring(ast.parse(source)) or "") is not None


def texts_by_line(source: str) -> str:
    """Return the strings and comments of Python ``source``, each on the lines where it is."""
    for kept in _KEPT:
        source = source.replace(kept, '""' if kept.startswith('"') else "")
    lines = [""] * (source.count("\n") + 2)
    kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in kinds:
            for offset, text in enumerate(token.string.splitlines()):
                lines[token.start[0] - 1 + offset] += f" {text}"
    return "\n".join(lines)


def _docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str()) as text), *_]:
                    yield text


def _joined(comments: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Yield comments, those of lines that follow each other as one."""
    last, text = 0, ""
    for line, comment in comments:
        if line == last + 1:
            text += f" {comment}"
        else:
            yield text
            text = comment
        last = line
    yield text


def _prose(kind: str, texts: Iterable[str]) -> Prose:
    paragraphs = (paragraph for text in texts for paragraph in re.split(r"\n\s*\n|\n(?=\s*[-*] )", text))
    return Prose(kind, tuple(" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.strip()))
