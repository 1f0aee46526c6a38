"""The border where what a simulated user says comes in: ``--lm-user``."""

from __future__ import annotations

from tests.border.table import Border, Row

USER = """
import asyncio, json
from pytest_lmeval import Completion

class User:
    name = "user.v1"

    async def complete(self, request):
        kind = request.prompt[0].content.partition("Somebody ")[2].split(".")[0]
        if kind == "cancelled":
            raise asyncio.CancelledError
        if kind == "missing": import none_such
        if kind == "raising":
            raise ValueError("the user fell over")
        if len(request.prompt) > 1 and kind not in SAID:
            return json.dumps({"say": "Bye.", "done": True})
        return SAID.get(kind, json.dumps({"say": "Hi.", "done": False}))

SAID = {
    "absent": None,
    "empty": '{"say": " ", "done": false}',
    "typed": '{"say": "Hi.", "done": "false"}',
    "prose": "Hi.",
    "costly": Completion('{"say": "Hi.", "done": false}', cost=float("nan")),
    "escape": '\\\\x1b{"say": "Hi.", "done": false}',
    "twice": '{"say": "Hi.", "done": true, "done": false}',
    "ended": '{"say": "Bye.", "done": true}',
    "endless": '{"say": "And then?", "done": false}',
}
"""
EVALS = """
from pytest_lmeval import eval_task

KINDS = "absent empty typed large prose costly escape twice ended endless cancelled raising good silent".split()

@eval_task("talk", data=[{"id": kind} for kind in (*KINDS, "missing", "two")])
async def test_talk(row, lm):
    user = lm.user(f"Somebody {row['id']}." + " " * (200_000 * (row["id"] == "large")), max_turns=2)
    async for said in user:
        if row["id"] != "silent":
            user.reply(said)
    if row["id"] == "two":
        other = lm.user("Somebody else.", max_turns=1)
        async for said in other:
            other.reply(said)
        assert ("max_turns", "done") == (other.ended, user.ended)
    assert (user.ended == "max_turns") == (row["id"] == "endless")
"""
KEPT = """
from pytest_lmeval import eval_task

USERS = []

@eval_task("kept", data=[{"id": "a"}], repeats=2)
def test_kept(row, lm):
    USERS.append(lm.user("Somebody good."))
    lm.score("talked", 1)
    if len(USERS) == 2:
        for said in USERS[0]:
            USERS[0].reply(said)
"""


def _refused(kind: str, what: str, said: str, says: str) -> Row:
    return Row(kind=kind, what=what, fate="refused", example=f"talk:{said}", status="error", says=says)


UNREAD = "lm.user: the reply of the user is no JSON object with say"
BORDER = Border(
    name="what a simulated user says",
    files={"user.py": USER, "tests/test_talk.py": EVALS, "tests/test_kept.py": KEPT},
    arguments=("--lm-adapter=model:Model", "--lm-user=user:User", "--lm-retries=0"),
    code=3,
    rows=(
        _refused("absent", "None", "absent", "adapter user.v1 returned NoneType"),
        _refused("empty", "a message without words", "empty", UNREAD),
        _refused("wrong type", "an end that is text", "typed", UNREAD),
        _refused("wrong type", "a message in prose", "prose", UNREAD),
        _refused("not finite or negative", "a cost that is no number", "costly", "cost"),
        _refused("control characters", "an escape before the object", "escape", UNREAD),
        _refused("twice", "two ends in one object", "twice", UNREAD),
        _refused("out of order", "the end before anything was said", "ended", UNREAD),
        _refused("cancelled", "a request that is cancelled", "cancelled", "CancelledError"),
        _refused("raising", "an exception", "raising", "the user fell over"),
        _refused("absent", "a body that does not reply", "silent", "the loop body did not call user.reply(...)"),
        Row(kind="late", what="a user that never ends", example="talk:endless", status="passed"),
        Row(kind="too large", what="a persona of 200,000 characters", example="talk:large", status="passed"),
        Row(kind="same name", what="a message, of all", example="talk:good", status="passed"),
        Row(kind="beside", what="two users in one function", example="talk:two", status="passed"),
        _refused("environment", "a package that is not installed", "missing", "No module named 'none_such'"),
        Row(
            kind="changed unseen",
            never="a persona is part of the function's code or of its task file, as all that is asked",
        ),
        Row(kind="earlier run", never="what an earlier user said: tests/plugin/evals/test_simulated_user.py"),
        Row(
            kind="kept client",
            what="a user of an example that has ended",
            fate="refused",
            example="kept:a",
            status="error",
            says="lm.user after its example had ended (kept: a)",
        ),
        Row(kind="secret", never="what is said is scrubbed where results are made, whoever said it (test_secrets)"),
    ),
)
