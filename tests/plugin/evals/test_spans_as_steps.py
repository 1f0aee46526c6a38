"""Spans of OpenTelemetry: each a step of the example it ran in, or counted."""

from __future__ import annotations

import contextvars
import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_lmeval.functions.example import CURRENT, ExampleState
from pytest_lmeval.functions.spans import Spans
from pytest_lmeval.functions.steps import Step
from tests import needs
from tests.conftest import Project

sdk = needs.module("opentelemetry.sdk.trace")

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"}
TOKENS = {"prompt_tokens": 7, "completion_tokens": 3}
USED = {"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 3}
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "ann", **USED}
OLD = {**CHAT, "gen_ai.usage.prompt_tokens": 5, "gen_ai.usage.completion_tokens": True}


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Provide a provider that is the process's own as far as the package can see."""
    provider = sdk.TracerProvider(shutdown_on_exit=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", SimpleNamespace(get_tracer_provider=lambda: provider))
    return provider


@pytest.fixture
def tracer(provider: Any) -> Any:
    return provider.get_tracer("app")


@pytest.fixture
def spans() -> Iterator[Spans]:
    spans = Spans(lambda: "127.0.0.1:8123")
    yield spans
    spans.close()


def _begun(spans: Spans, id: str = "a") -> ExampleState:
    state = ExampleState("task", id, 0, lambda state, said: None, spans)
    state.begin(beside=True)
    return state


def _alone(spans: Spans, act: Callable[[ExampleState], None]) -> list[Step]:
    """Return the steps of one example, which does ``act``."""
    state = _begun(spans)

    def run() -> None:
        CURRENT.set(state)
        act(state)

    contextvars.copy_context().run(run)
    state.end()
    return state.steps


def test_a_span_below_one_of_an_example_is_of_the_same_one_wherever_it_begins(spans: Spans, tracer: Any) -> None:
    from opentelemetry import context

    def act(state: ExampleState) -> None:
        with tracer.start_as_current_span("above"):
            here = context.get_current()
            with ThreadPoolExecutor(1) as pool:
                pool.submit(lambda: tracer.start_span("below", context=here).end()).result()

    assert ["above", "below"] == [step.name for step in _alone(spans, act)]
    assert ([], {}) == (spans.notes, spans._spans)


@pytest.mark.parametrize(
    ("name", "attributes", "step"),
    [
        ("GET", {"http.status": 200}, Step("span", "GET", {"http.status": 200})),
        ("chat m-1", {**CHAT, **USED}, Step("model", "m-1", {**CHAT, **USED}, usage=TOKENS)),
        (
            "chat",
            {
                "gen_ai.operation.name": "generate_content",
                "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]',
                "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "tool_call", "name": "f"}]}]',
            },
            Step(
                "model",
                "chat",
                [{"role": "user", "content": "Hi"}],
                [{"role": "assistant", "parts": [{"type": "tool_call", "name": "f"}]}],
            ),
        ),
        (
            "execute_tool search",
            {"gen_ai.tool.name": "search", "gen_ai.tool.call.arguments": '{"q": 1}', "gen_ai.tool.call.result": "[]"},
            Step("tool", "search", {"q": 1}, []),
        ),
        ("t", {"gen_ai.tool.name": "t", "gen_ai.tool.call.arguments": "{no json"}, Step("tool", "t", "{no json")),
        ("x", AGENT, Step("agent", "ann", AGENT)),
        ("old", OLD, Step("model", "m-1", OLD, usage={"prompt_tokens": 5})),
    ],
)
def test_a_span_is_read_by_the_genai_conventions(
    spans: Spans, tracer: Any, name: str, attributes: dict[str, Any], step: Step
) -> None:
    (found,) = _alone(spans, lambda state: tracer.start_span(name, attributes=attributes).end())
    told = ("kind", "name", "input", "output", "error")
    assert [getattr(step, each) for each in told] == [getattr(found, each) for each in told]
    assert dict(step.usage) == dict(found.usage)
    assert found.ms is not None


def test_an_error_of_a_span_is_that_of_its_step(spans: Spans, tracer: Any) -> None:
    def act(state: ExampleState) -> None:
        with pytest.raises(KeyError), tracer.start_as_current_span("fails"):
            dict[str, int]()["missing"]

    (step,) = _alone(spans, act)
    assert "KeyError: 'missing'" == step.error


def test_what_a_span_holds_beyond_a_mebibyte_is_cut(spans: Spans, tracer: Any) -> None:
    large = {"gen_ai.tool.name": "t", "gen_ai.tool.call.result": "x" * (2 << 20)}
    many = {f"a{number}": "y" * (1 << 18) for number in range(8)}

    def act(state: ExampleState) -> None:
        tracer.start_span("s", attributes=large).end()
        tracer.start_span("s", attributes=many).end()

    steps = _alone(spans, act)
    assert all((1 << 20) < len(text) < (1 << 20) + 50 for text in (steps[0].output, steps[1].input))


def test_tokens_are_counted_once(spans: Spans, tracer: Any) -> None:
    def asks(state: ExampleState) -> None:
        # What lm.base_url answered is a step of its own, recorded while the client waited.
        state.insert(Step("request", "stub", start_ms=state.now_ms, ms=0.0, usage=TOKENS))

    def act(state: ExampleState) -> None:
        with tracer.start_as_current_span("chain", attributes={**CHAT, **USED}):
            tracer.start_span("alone", attributes={**CHAT, **USED}).end()
        with tracer.start_as_current_span("framework", attributes={**CHAT, **USED}):
            here = {"server.address": "127.0.0.1", "server.port": 8123}
            tracer.start_span("ours", attributes={**CHAT, **USED, **here}).end()
        with tracer.start_as_current_span("unnamed", attributes={**CHAT, **USED}):
            asks(state)
        other = {"server.address": "api.example.com", "server.port": 8123}
        with tracer.start_as_current_span("other", attributes={**CHAT, **USED, **other}):
            asks(state)

    used = [bool(step.usage) for step in _alone(spans, act) if step.kind == "model"]
    #       chain  alone framework  ours  unnamed  other
    assert [False, True, False, False, False, True] == used


def test_a_span_that_outlives_its_example_is_counted(spans: Spans, tracer: Any) -> None:
    left = []
    assert [] == _alone(spans, lambda state: left.append(tracer.start_span("endless")))
    left[0].end()
    assert ["OpenTelemetry: 1 span had not ended when the example did, and cannot be steps"] == spans.notes


def test_a_provider_that_is_set_late_is_said(
    spans: Spans, provider: Any, tracer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = sys.modules.pop("opentelemetry.trace")
    first = _begun(spans)
    sys.modules["opentelemetry.trace"] = api
    first.end()
    assert "set when 1 example had begun" in spans.notes[0]
    assert ["seen"] == [step.name for step in _alone(spans, lambda state: tracer.start_span("seen").end())]


def test_spans_of_no_time_of_an_example_are_not_counted(spans: Spans, tracer: Any) -> None:
    _begun(spans).end()
    tracer.start_span("set-up").end()
    spans.close()
    tracer.start_span("after").end()
    assert [] == spans.notes


def test_instrumented_code_of_an_eval_leaves_steps(project: Project) -> None:
    project.write(
        "conftest.py",
        """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

trace.set_tracer_provider(TracerProvider(shutdown_on_exit=False))
""",
    )
    project.write(
        "test_agent.py",
        """
import asyncio
from opentelemetry import trace
from pytest_lmeval import eval_task
from pytest_lmeval.trajectory import called, in_order

tracer = trace.get_tracer("app")

def search(q):
    with tracer.start_as_current_span("t", attributes={"gen_ai.tool.name": "search", "gen_ai.tool.call.arguments": q}):
        return 1

@eval_task("agent", data=[{"n": n} for n in range(40)])
async def test_agent(row, lm):
    query = '{"n": %d}' % row["n"]
    with tracer.start_as_current_span("plan"):
        reply = await lm.ask(f"say: {row['n']}")
        await asyncio.gather(*(asyncio.to_thread(search, query) for _ in range(2)))
    await asyncio.get_running_loop().run_in_executor(None, search, query)
    assert reply.text == str(row["n"])
    assert called(lm.trace, "search", times=2, arguments={"n": row["n"]})
    assert in_order(lm.trace, "search", "search")
""",
    )
    done = project.run("test_agent.py")
    done.assert_outcomes(passed=40)
    done.stdout.fnmatch_lines(["*OpenTelemetry: 40 spans of no example (t): started in threads*"])
    lines = (project.path / "reports" / "ledger.jsonl").read_text("utf-8").splitlines()
    for line in lines[1:41]:
        steps = json.loads(line)["details"]["steps"]
        assert ["span", "request", "tool", "tool"] == [step["kind"] for step in steps]


@pytest.mark.command_line
def test_a_run_without_opentelemetry_imports_none_of_it(project: Project) -> None:
    project.write(
        "test_a.py",
        """
import sys
from pytest_lmeval import eval_task

@eval_task("a", data=[{"id": "x"}])
async def test_a(row, lm):
    assert not [name for name in sys.modules if name.startswith("opentelemetry")]
""",
    )
    project.run("test_a.py").assert_outcomes(passed=1)
