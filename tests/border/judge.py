"""The border where a judge's reply comes in: ``--lm-judge``."""

from __future__ import annotations

import json

from tests.border.table import Border, Row, since_baseline
from tests.yaml_tasks import POLITE

JUDGE = """
import asyncio
from pytest_lmeval import Completion

class Judge:
    name = "judge.v1"

    async def complete(self, request):
        asked = request.prompt[0].content
        if asked.startswith("Grade"):
            return GRADES[asked.rpartition("<text-")[2].splitlines()[1]]
        said = asked.partition("Judge: ")[2]
        if said == "cancelled":
            raise asyncio.CancelledError
        if said == "missing":
            import none_such
        if said == "printed":
            print("beside the label: no")
        if said == "raising":
            raise ValueError("the judge fell over")
        return REPLIES.get(said, "yes")
"""
REPLIED = """
GRADES = {
    "no score": '{"reason": "so"}',
    "typed score": '{"reason": "so", "score": true}',
    "prose": "It deserves a 1.",
    "below": '{"reason": "so", "score": -1}',
    "two scores": '{"reason": "so", "score": 0, "score": 1}',
    "turned": '{"score": 1, "reason": "so"}',
}
REPLIES = {
    "absent": None,
    "empty": "",
    "typed": 7,
    "large": "yes " * 50_000,
    "costly": Completion("yes", cost=float("nan")),
    "escape": "\\x1b[31myes",
    "twice": "yes\\nno",
    "thought": "<think>no</think>yes",
}
"""
SAID = (
    "absent",
    "empty",
    "typed",
    "large",
    "costly",
    "escape",
    "twice",
    "thought",
    "cancelled",
    "raising",
    "good",
    "missing",
    "printed",
)


NO_GRADE = "rubric: the judge's reply is no JSON object with a reason and a score"
GRADES = [
    ("empty", "a grade without a score", "no score", NO_GRADE),
    ("wrong type", "a score that is true", "typed score", NO_GRADE),
    ("wrong type", "a grade in prose", "prose", NO_GRADE),
    ("not finite or negative", "a score below all levels", "below", NO_GRADE),
    ("twice", "two scores in one grade", "two scores", NO_GRADE),
    ("out of order", "the score before the reason", "turned", ""),
]
GRADED = "".join(
    json.dumps({"id": said, "prompt": f"say: {said}", "metric": "rubric", "extras": {"rubric": "Good?"}}) + "\n"
    for _, _, said, _ in GRADES
)


def refused(kind: str, what: str, said: str, says: str, on: tuple[str, ...] | None = None) -> Row:
    example = f"polite:{SAID.index(said)}"
    return Row(kind=kind, what=what, fate="refused", example=example, status="error", says=says, on=on)


def _grade(row: tuple[str, str, str, str]) -> Row:
    kind, what, said, says = row
    fields = {"status": "error", "says": says, "fate": "refused"} if says else {"status": "passed"}
    return Row(kind=kind, what=what, example=f"grade:{said}", **fields)  # type: ignore[arg-type]  # of two kinds


# Markdown lists the first errors of a run alone.
LISTED = ("terminal", "board", "junit", "page")
UNREAD = "the judge's reply is no label"
BORDER = Border(
    name="a judge's reply",
    files={
        "judge.py": JUDGE + REPLIED,
        "tasks/polite.yaml": POLITE,
        "tasks/grade.jsonl": GRADED,
        "tasks/rows.csv": "\n".join(["said", *SAID, ""]),
    },
    arguments=("--lm-adapter=model:Model", "--lm-judge=judge:Judge", "--lm-retries=0"),
    code=3,
    rows=(
        refused("absent", "None", "absent", "adapter judge.v1 returned NoneType"),
        refused("empty", "an empty reply", "empty", UNREAD),
        refused("wrong type", "a number", "typed", "adapter judge.v1 returned int"),
        refused("too large", "200,000 characters", "large", UNREAD),
        refused("not finite or negative", "a cost that is no number", "costly", "cost"),
        refused("control characters", "an escape before the label", "escape", UNREAD),
        refused("twice", "two labels", "twice", UNREAD),
        refused("cancelled", "a request that is cancelled", "cancelled", "CancelledError"),
        refused("raising", "an exception", "raising", "the judge fell over"),
        Row(
            kind="out of order",
            what="a label after thoughts",
            example=f"polite:{SAID.index('thought')}",
            status="passed",
        ),
        *map(_grade, GRADES),
        Row(kind="same name", what="a label, of all", example=f"polite:{SAID.index('good')}", status="passed"),
        Row(kind="beside", what="a judge that prints", example=f"polite:{SAID.index('printed')}", status="passed"),
        refused("environment", "a package that is not installed", "missing", "No module named 'none_such'", on=LISTED),
        since_baseline(
            "changed unseen",
            "another judge since the baseline",
            "polite has another judge than in the baseline: judge.v1, in the",
            {"judge.py": (JUDGE + REPLIED).replace("judge.v1", "judge.v0")},
            files={"tasks/rows.csv": "said\ngood\n", "tasks/grade.jsonl": GRADED.splitlines()[-1]},
        ),
        Row(kind="earlier run", never="a reply of an earlier run comes in by the cache or a resume, as a model's does"),
        Row(
            kind="kept client",
            never="a judge is asked by lm.judge and by metrics; an application's client asks the model",
        ),
        Row(kind="late", never="a reply after --lm-timeout is an error of the request, as a model's is (answer.py)"),
        Row(kind="secret", never="what is said is scrubbed where results are made, whoever said it (test_secrets)"),
    ),
)
