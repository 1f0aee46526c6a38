"""Templates: plain data in, text out, within limits; nothing else, however it is asked for."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pytest_lmeval
from pytest_lmeval.templates import filters
from pytest_lmeval.templates.filters import MEMORY, MemoryBudget
from pytest_lmeval.templates.template import Template, TemplateFault, compile_template
from tests.conftest import Project
from tests.tables import each_row

SAMPLE: dict[str, Any] = {
    "first": "a",
    "last": "c",
    "items": [1, 2, 3],
    "names": ["x", "y"],
    "text": "{{ sample.first }}",
    "deep": {"keys": "k"},
    "none": None,
}


def _render(source: str, **variables: Any) -> str:
    return compile_template(source).render({"sample": SAMPLE, **variables})


@each_row(
    ("source", "text"),
    [
        ("{{ sample.first }} and {{ sample['last'] }}", "a and c"),
        ("{{ sample.first if sample.last == 'c' else 'no' }}\n", "a"),
        (
            "{% for x in sample.items %}{{ loop.index }}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}",
            "11,22,33",
        ),
        ("{{ '\\n---\\n'.join(sample.names) }}", "x\n---\ny"),
        ("{{ sample.names | join('; ') }}", "x; y"),
        ("{{ sample.names | tojson }}", '["x", "y"]'),
        ('{"a": {{ sample | tojson }}}', None),
        ("{{ '<ü>' | tojson }}", '"<ü>"'),
        ("{{ sample.first ~ 1 }}", "a1"),
        ("{{ sample.none or 'd' }}{{ (sample.none or 'd') | upper }}", "dD"),
        ("{{ 'no' if sample.none is none else sample.none }}{{ sample.none | tojson }}", "nonull"),
        ("{{ sample.first + 'b' }}", "ab"),
        ("{{ 'ab' * 2 }}", "abab"),
        ("{{ (1 + 2) * 3 - 4 // 2 }}", "7"),
        ("{{ sample.first.upper() }}", "A"),
        ("{{ 'a-b'.split('-')[1] }}", "b"),
        ("{{ 'abc'.replace('b', 'x') }}{{ 'abc' | replace('b', 'y') }}", "axcayc"),
        ("{{ sample.deep.items() | list }}", "[('keys', 'k')]"),
        ("{{ sample.items | sum }}{{ sample.items | max }}{{ 2.567 | round(1) }}", "632.6"),
        ("{{ sample.nope | default('d') }}", "d"),
        ("{{ sample.nope is defined }}", "False"),
        ("{% set x = sample.first %}{{ x }}{% with y = x %}{{ y }}{% endwith %}", "aa"),
        ("{{ 'a\nb' | indent(2) }}", "a\n  b"),
        ("{% raw %}{{ x }}{% endraw %}{# c #}", "{{ x }}"),
        ("{{ sample.names | map('upper') | list }}", "['X', 'Y']"),
    ],
)
def test_templates_do_what_jinja_does(source: str, text: str | None) -> None:
    assert text in (None, _render(source))


def test_a_column_goes_before_a_method_of_its_name() -> None:
    assert "[1, 2, 3]" == _render("{{ sample.items }}")
    assert "k" == _render("{{ sample.deep.keys }}")


@each_row(
    "source",
    [
        "{{ ''.__class__ }}",
        "{{ ''['__class__'] }}",
        "{{ sample.__class__.__mro__ }}",
        "{{ ().__class__.__bases__[0].__subclasses__() }}",
        "{{ sample.first.join.__self__ }}",
        "{{ ''|attr('__class__') }}",
        "{{ 'x' | map(attribute='__class__') | list }}",
        "{{ sample.names | groupby('__class__') }}",
        "{{ [sample] | map(attribute='__class__') | list }}",
        "{{ ['a', 'b'] | sort(attribute='__class__') }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ '{x.__class__}'.format_map(sample) }}",
        "{{ '%s' % sample }}",
        "{{ '%s' | format(1) }}",
        "{{ range.__self__ }}",
        "{{ self.__init__.__globals__ }}",
        "{{ self }}",
        "{{ lipsum.__globals__ }}",
        "{{ cycler.__init__ }}",
        "{{ namespace() }}",
        "{{ joiner() }}",
        "{{ dict(a=1) }}",
        "{{ sample.update({}) }}",
        "{{ sample.names.append(1) }}",
        "{{ sample.first.encode() }}",
        "{{ sample.first.format() }}",
        "{{ loop }}",
        "{% for x in [1] %}{{ loop.__class__ }}{% endfor %}",
        "{% for x in [1] %}{{ loop.__call__ }}{% endfor %}",
        "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{% extends 'x' %}",
        "{% macro m() %}{% endmacro %}",
        "{% block a %}{% endblock %}",
        "{% set x %}{% endset %}",
        "{% filter upper %}{% endfilter %}",
        "{{ sample.first.upper }}",
        "{{ sample.names | map('upper') }}",
        "{{ ' budget' }}{{ context }}",
        "{{ 1 + [] }}",
        "{{ sample.first() }}",
    ],
)
def test_ways_out_are_closed(source: str) -> None:
    with pytest.raises(TemplateFault):
        _render(source)


@each_row(
    "source",
    [
        "{{ 'a' * 1000000000 }}",
        "{{ 1000000000 * 'a' }}",
        "{{ [1] * 1000000000 }}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ 2 ** 100000 }}",
        "{% set x = 2 ** 60 %}" + "{% set x = x * x %}" * 40 + "{{ x }}",
        "{{ 'a'.center(1000000000) }}",
        "{{ 'a' | center(1000000000) }}",
        "{{ 'a'.ljust(1000000000) }}",
        "{{ 'a'.zfill(1000000000) }}",
        "{{ 'a\tb'.expandtabs(1000000000) }}",
        "{{ 'aaaa'.replace('', 'b' * 1000000) }}",
        "{{ 'aaaa' | replace('', 'b' * 1000000) }}",
        "{{ ('x' * 4000000).join('abc') }}",
        "{{ 'abc' | join('x' * 4000000) }}",
        "{{ 'a' | indent(1000000000) }}",
        "{{ [1] | tojson(indent=1000000000) }}",
        "{{ 2 | round(1000000000, 'floor') }}",
        "{{ '%1000000000d' % 1 }}",
        "{% for x in range(1000000000) %}{% endfor %}",
        "{% for x in range(99999) %}{% for y in range(99999) %}{% endfor %}{% endfor %}",
        "{% for x in range(99999) %}" + "y" * 1000 + "{% endfor %}",
        "{{ range(99999) | map('replace', '1', 'x' * 1000) | join }}",
        "{% set a = 'xxxxxxxxxx' %}" + "{% set a = a ~ a %}" * 60 + "{{ a }}",
        "{% set a = 'xxxxxxxxxx' %}" + "{% set a = a + a %}" * 60 + "{{ a }}",
        "{% set a = [1] %}" + "{% set a = [a, a] %}" * 60 + "{{ a }}",
        "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
        "{{ [[1]] | sum(start=[]) }}",
    ],
)
def test_what_grows_without_limit_ends(source: str) -> None:
    with pytest.raises(TemplateFault):
        _render(source)


@pytest.mark.parametrize(
    "source",
    [
        "{% set a = [1] %}" + "{% set a = (a, a) %}" * 60 + "{{ a | tojson }}",
        "{% set a = [1] %}" + "{% set a = {'x': a, 'y': a} %}" * 60 + "{{ a == a }}",
        "{% set a = [1] %}" + "{% set a = a + a %}" * 60 + "{{ a }}",
    ],
)
def test_what_holds_itself_again_and_again_ends(
    source: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if not request.config.getoption("all"):
        # It is walked up to this number; one above is walked up to the number that users have.
        monkeypatch.setattr(filters, "MAX_ELEMENTS", filters.MAX_ELEMENTS // 20)
    with pytest.raises(TemplateFault, match=r"elements|characters"):
        _render(source)


KEPT = {
    "products": "{{% set a{n} = 'x' * 25000 %}}",
    "sums": "{{% set a{n} = x + 'x' %}}",
    "texts put together": "{{% set a{n} = x ~ {n} %}}",
    "slices": "{{% set a{n} = x[1:] %}}",
    "texts in upper case": "{{% set a{n} = x | upper %}}",
    "texts from methods": "{{% set a{n} = x.lower() %}}",
    "lists of numbers": "{{% set a{n} = range(1250) | list %}}",
    "lists of characters": "{{% set a{n} = x[:1250] | list %}}",
    "parts": "{{% set a{n} = (x[:1250] | replace('x', 'x ')).split() %}}",
    "JSON": "{{% set a{n} = x | tojson %}}",
}


@pytest.mark.parametrize("each", KEPT.values(), ids=KEPT)
def test_all_that_a_template_keeps_has_a_limit(each: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Traced, and on a slow machine, the time would be up first.
    monkeypatch.setattr(filters, "MAX_SECONDS", 600.0)
    few = MemoryBudget(1 << 18)
    source = "{% set x = 'x' * 25000 %}" + "".join(each.format(n=n) for n in range(60))
    template = compile_template(source)
    tracemalloc.start()
    try:
        with pytest.raises(TemplateFault, match="more than 64 MiB of text and lists in the templates of one example"):
            template.render({MEMORY: few})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 2 << 18


def test_templates_of_one_example_share_their_memory_and_those_of_two_do_not() -> None:
    template = compile_template("{{ 'x' * 2000000 }}")
    for _ in range(40):
        template.render({MEMORY: MemoryBudget()})
    shared = {MEMORY: MemoryBudget()}
    # Each makes the text and writes it.
    for _ in range(16):
        template.render(shared)
    with pytest.raises(TemplateFault, match="templates of one example"):
        template.render(shared)


def test_what_is_looked_up_again_and_again_takes_no_memory() -> None:
    source = "{% for _ in range(1000) %}{{ d.get('t') | default('') | length }}{{ [d.t] | length }}{% endfor %}"

    assert "10000001" * 1000 == compile_template(source).render({"d": {"t": "x" * 10**6}})


DEEP = {
    "loops": ("{% for x in [1] %}", "{% endfor %}", 17, "more than 16 loops"),
    "loops with a condition": ("{% for x in [1] if x %}", "{% endfor %}", 17, "more than 16 loops"),
    "conditions": ("{% if 1 %}", "{% endif %}", 41, "more than 40 blocks"),
    "scopes": ("{% with %}", "{% endwith %}", 41, "more than 40 blocks"),
}


@pytest.mark.parametrize(("start", "end", "most", "told"), DEEP.values(), ids=DEEP)
def test_blocks_may_be_nested_so_deep_and_no_deeper(start: str, end: str, most: int, told: str) -> None:
    assert "x" == compile_template(start * (most - 1) + "x" + end * (most - 1)).render({})
    with pytest.raises(TemplateFault, match=f"^line 3 of the template: {told} within one another$"):
        compile_template("a\n\n" + start * most + "x" + end * most)


def test_the_deepest_mixture_of_blocks_is_compiled() -> None:
    loops = "{% for x in [1] if x %}{{ loop.index }}" * 16
    source = loops + "{% if 1 %}" * 24 + "x" + "{% endif %}" * 24 + "{% else %}{% endfor %}" * 16

    assert "1" * 16 + "x" == compile_template(source).render({})


def test_an_error_shows_the_template_and_what_there_is_instead() -> None:
    with pytest.raises(TemplateFault) as caught:
        _render("Q: {{ sample.frist }}")
    assert "template 'Q: {{ sample.frist }}': there is no 'frist'; did you mean 'first'?" == str(caught.value)
    with pytest.raises(TemplateFault, match="there is no 'zzz'; there is first, last, items"):
        _render("{{ sample.zzz }}")
    with pytest.raises(TemplateFault, match=r"^line 2 of the template: expected name"):
        compile_template("a\n{{ sample.")


@settings(deadline=None)
@given(st.text() | st.sampled_from(["{{ 1 + 1 }}", "{% raw %}", "{# x #}", "<< config.x >>", "{{", "}}"]))
def test_data_is_never_read_as_a_template(text: str) -> None:
    assert f"[{text}]" == compile_template("[{{ sample.x }}]").render({"sample": {"x": text}})


def test_an_expression_alone_has_a_value() -> None:
    value: Any = compile_template(" {{ sample.items }}\n").value({"sample": SAMPLE})
    assert [1, 2, 3] == value
    assert compile_template("{{ 1 == 1 }}").value({}) is True
    assert "x1" == compile_template("x{{ 1 }}").value({})
    assert "plain" == compile_template("plain").value({})
    with pytest.raises(TemplateFault, match="there is no 'nope'"):
        compile_template("{{ sample.nope }}").value({"sample": SAMPLE})


def test_a_template_knows_what_it_takes() -> None:
    source = "{{ scores.a.label }}{{ scores['b c'].x }}{% for x in sample.y %}{{ x.z }}{% endfor %}{{ m[0].content }}"
    template: Template = compile_template(source)
    assert {("scores", "a", "label"), ("scores", "b c", "x"), ("sample", "y"), ("m",)} == template.names
    assert not template.tolerates_missing
    assert compile_template("{{ sample.x | d('') }}").tolerates_missing
    assert compile_template("{% if sample.x is undefined %}{% endif %}").tolerates_missing


def test_a_null_is_no_text_unless_the_template_says_which() -> None:
    row = {"row": {"answer": None}}
    writing = (
        "{{ row.answer | upper }}",
        "{{ row.answer ~ 'x' }}",
        "{{ [row.answer] | join }}",
        "{{ row.answer | string }}",
    )
    for source in ("{{ row.answer }}", "It is {{ row.answer }}.", "{{ none }}", *writing):
        with pytest.raises(TemplateFault, match="the value is null, which has no text"):
            compile_template(source).render(row)
    assert "nobody" == compile_template("{{ row.answer or 'nobody' }}").render(row)
    assert "" == compile_template("{{ row.answer if row.answer is not none }}").render(row)
    # As a value, and in what asks for it, it stays one.
    assert compile_template("{{ row.answer }}").value(row) is None
    assert "yes" == compile_template("{% if row.answer is none %}yes{% endif %}").render(row)


NULLS = """
prompt: "Say {{ name or 'nobody' }} of {{ id }}"
rows: [{id: a, name: null}, {id: b, name: Bo}]
target: "{{ name or 'nobody' }}"
metric: exact_match
"""


def test_data_files_and_records_take_a_null_within_an_expression_and_none_by_itself(project: Project) -> None:
    project.write("tasks/rows.yaml", NULLS)
    defaults = {"prompt": "Say {{ name or 'nobody' }}", "metric": "exact_match"}
    project.task("tasks/lines.jsonl", {"defaults": defaults}, {"id": "a", "name": None, "targets": ["nobody"]})
    project.run("--lm-gate=none")
    asked = ["Say Bo of b", "Say nobody", "Say nobody of a"]
    assert asked == sorted(prompt for prompts in project.calls() for prompt in prompts)
    project.write("tasks/rows.yaml", NULLS.replace(" or 'nobody'", ""))
    result = project.run()
    assert 2 == result.ret
    result.stdout.fnmatch_lines(["*tasks/rows.yaml:*: bad_value prompt: 'name' is empty, and the template uses it; *"])


RUBRICS = """
prompt: "{{ p }}"
data: rows.csv
metric: rubric
extras: {rubric: "Does the answer mention {{ label }}?", human_label: "{{ by }}"}
"""


def test_extras_of_data_files_and_defaults_are_filled_for_every_row(project: Project) -> None:
    project.write("tasks/rows.csv", "id,p,label,by\na,say: x,tea,1\nb,say: y,rice,0\n")
    project.write("tasks/rows.yaml", RUBRICS)
    project.write(
        "tasks/checked.yaml",
        RUBRICS.replace("metric: rubric\nextras: {", "checks: [{metric: rubric, extras: {") + "}]\n",
    )
    extras = {"rubric": "Does the answer mention {{ label }}?"}
    defaults = {"prompt": "{{ p }}", "metric": "rubric", "extras": extras}
    project.task("tasks/lines.jsonl", {"defaults": defaults}, {"id": "a", "p": "say: z", "label": "salt"})
    project.write("judge.py", JUDGE)
    project.run("--lm-judge=judge:Judge", "--lm-gate=none")
    asked = [re.search(r"mention (.*)\?", prompt)[1] for prompt in project.asked("judged.txt")]  # type: ignore[index]
    assert ["rice", "rice", "salt", "tea", "tea"] == sorted(asked)
    assert {1.0} == {row["metrics"]["rubric.agreement"] for row in project.board()["tasks"] if row["task"] == "rows"}


JUDGE = """
import json

class Judge:
    name = "judge"

    def generate(self, prompts):
        with open("judged.txt", "a") as file:
            file.writelines(json.dumps(prompt) + "\\n" for prompt in prompts)
        return [json.dumps({"reason": "so", "score": float("tea" in prompt)}) for prompt in prompts]
"""


def test_one_function_compiles_the_templates_of_all_formats() -> None:
    package = Path(pytest_lmeval.__file__).parent
    calls = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"environment\.compile\(|from_string\(|jinja2\.Template\(", path.read_text("utf-8"))
    }
    assert {"templates/template.py"} == calls
