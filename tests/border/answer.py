"""The border "a model's answer": whatever an adapter returns or a server replies is used, refused or reported."""

from __future__ import annotations

import json

from tests.border.table import Border, Row, since_baseline

# The prompt is what the adapter returns; ``reply`` reads a server's reply as the adapter openai, or another one, does.
ANSWERS = """
import asyncio, math
from pytest_lmeval import Completion
from pytest_lmeval.adapters import anthropic, openai
from pytest_lmeval.adapters.http.reply import parse
from pytest_lmeval.adapters.http.secret import ApiKey

KEY = "kept-hushed-000-secret"

def reply(body, of=openai):
    found = parse(body.encode(), "HTTP 200", ApiKey(""))
    return of.response.completion(found, of.options.read_options({}), latency_ms=1.0)

def throw(error):
    raise error

class Other:
    Completion = type("Completion", (), {"text": "4"})

class Answers:
    name = "odd.v1"

    def __init__(self, api_key=""):
        self.asked = {}

    async def complete(self, request):
        self.asked[request.id] = self.asked.get(request.id, 0) + 1
        return eval(request.text, {**globals(), "attempt": self.asked[request.id]})
"""


def _row(kind: str, name: str, answer: str, **fields: object) -> Row:
    """Return the row of an example of the task ``name`` that is answered with ``answer``, and should be with 4."""
    record = {"id": "a", "prompt": answer, "targets": ["4"], "metric": "exact_match"}
    files = {f"tasks/{name}.jsonl": json.dumps(record) + "\n"}
    return Row(kind=kind, what=answer, files=files, example=f"{name}:a", **fields)  # type: ignore[arg-type]  # by name


def _refused(kind: str, name: str, answer: str, says: str, status: str = "error", **fields: object) -> Row:
    return _row(kind, name, answer, fate="refused", status=status, says=says, **fields)


def _used(kind: str, name: str, answer: str, score: float = 1.0, **fields: object) -> Row:
    return _row(kind, name, answer, status="passed" if score else "failed", score=score, **fields)


def _choice(**fields: object) -> str:
    return repr(json.dumps({"choices": [{"message": {"content": "4"}, **fields}]}))


def _blocks(**usage: object) -> str:
    return repr(json.dumps({"content": [{"type": "text", "text": "4"}], "usage": usage}))


# Markdown lists 25 failures, in the order of the files: the last two are not on it.
_LISTED = ("terminal", "board", "junit", "page")
_IMAGE = '{"content": [{"type": "image"}]}'
_TWICE = '{"choices": [{"message": {"content": "4"}}], "choices": [{"message": {"content": "5"}}]}'
BORDER = Border(
    name="a model's answer",
    files={"answers.py": ANSWERS},
    arguments=("--lm-adapter=answers:Answers", "--lm-adapter-arg=api_key=kept-hushed-000-secret", "--lm-retries=1"),
    code=3,
    rows=(
        _refused("absent", "none", "None", "returned NoneType, expected text"),
        _refused("absent", "no_choice", "reply('{\"choices\": []}')", "no choices"),
        _used("absent", "no_reason", "Completion('4', finish_reason=None)"),
        _used("empty", "empty", "''", 0.0),
        _used("empty", "no_calls", "Completion('4', tool_calls=[])"),
        _refused("wrong type", "number", "Completion(5)", "returned a Completion with text 5; expected text"),
        _refused("wrong type", "cost", "Completion('4', cost='1')", "returned a Completion with cost '1'; expected a"),
        _refused("wrong type", "share", "Completion('4', confidence=2)", "returned a Completion with confidence 2;"),
        _refused("wrong type", "calls", "Completion('4', tool_calls=['add'])", "tool calls that are not (id, name,"),
        _refused("wrong type", "usage", f'reply({_choice()[:-2]}, "usage": 5}}\')', "expected usage to be an object"),
        _used("wrong type", "thought", "Completion('</think>4', thoughts='hm')"),
        _used("twice", "thoughts", "Completion('<think>a<think>b</think>c</think>4')"),
        Row(
            kind="same name",
            what="several models under one name",
            fate="reported",
            files={},
            says="several models answered, according to the server: m (fp_1) (1), m (fp_2) (1)",
        ),
        _used("same name", "one", "Completion('4', served_by='m (fp_1)')"),
        _used("same name", "two", "Completion('4', served_by='m (fp_2)')"),
        _row(
            *("wrong type", "tags", "Completion('<thinking>hm</thinking>4')"),
            fate="reported",
            status="failed",
            score=0.0,
            says="tags: 1 of 1 outputs begin with <thinking>: these thoughts are scored as part",
        ),
        _refused("too large", "tokens", "Completion('4', prompt_tokens=10**400)", "with prompt_tokens 1000000000"),
        _refused("too large", "price", "Completion('4', cost=1e300)", "with cost 1e+300; expected a finite number"),
        _refused("not finite or negative", "nan", "Completion('4', cost=math.nan)", "with cost nan; expected a finite"),
        _refused("not finite or negative", "inf", "Completion('4', prompt_tokens=math.inf)", "with prompt_tokens inf;"),
        _refused("not finite or negative", "minus", "Completion('4', latency_ms=-1.0)", "with latency_ms -1.0; expect"),
        _refused("not finite or negative", "first", "Completion('4', ttft_ms=math.nan)", "with ttft_ms nan; expected"),
        _refused("not finite or negative", "logs", "Completion('4', logprobs=(math.nan,))", "with logprobs nan; expec"),
        _used("control characters", "escape", r"'\x00\x1b[2J\ud800'", 0.0),
        _used("control characters", "reason", r"Completion('4', finish_reason='\x1b[2J')"),
        _refused("twice", "twice", f"reply({_TWICE!r})", "the reply has 'choices' twice"),
        _refused("late", "late", "throw(TimeoutError('too late'))", "too late", status="timeout"),
        Row(kind="out of order", never="an answer is what the call of its own request returns"),
        _refused("cancelled", "cancelled", "throw(asyncio.CancelledError())", "raised CancelledError"),
        _refused("raising", "raising", "throw(RuntimeError('no luck'))", "raised RuntimeError: no luck"),
        _refused("raising", "broken", "Completion('4', finish_reason='error')", "the answer broke off (finish_reason"),
        _refused("raising", "within", f"reply({_choice(error={'code': 502})})", "error in the choice"),
        _used("raising", "again", "Completion('4', finish_reason='error' if attempt == 1 else 'stop')"),
        _used("secret", "secret", "KEY", 0.0, unsaid="kept-hushed-000-secret"),
        _used("absent", "no_usage", f"reply({_blocks()}, anthropic)"),
        _refused(
            "wrong type", "written", f"reply({_IMAGE!r}, anthropic)", "a block 'image'; expected text", on=_LISTED
        ),
        _refused(
            "not finite or negative", "wrong", f"reply({_blocks(output_tokens=-1)}, anthropic)", "usage: ", on=_LISTED
        ),
        _used("beside", "printed", "print('beside the answer') or '4'"),
        _refused(
            "environment", "without", "__import__('none_such')", "ModuleNotFoundError: No module named", on=_LISTED
        ),
        since_baseline(
            "changed unseen",
            "another model behind the same name",
            "the server reports another model than in the baseline: m-2 (1)",
            {"server.py": "SERVED = 'm-1'"},
            files={
                "server.py": "SERVED = 'm-2'",
                **_row("changed unseen", "moved", "Completion('4', served_by=__import__('server').SERVED)").files,
            },
            example="moved:a",
            status="passed",
        ),
        Row(
            kind="earlier run", never="answers of an earlier run come in by the cache, a recording or a resumed ledger"
        ),
        Row(
            kind="kept client", never="an adapter is called by the run alone, within the example; clients: endpoint.py"
        ),
        _refused("same name", "other", "Other.Completion()", "answers.Completion, expected text"),
    ),
)
