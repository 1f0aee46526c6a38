"""Evals of the sorting, with the client that the repository keeps."""

from mail.store import MAILS
from triage.sorting import label_of

from pytest_lmeval import eval_task

# By number: mails of the gold customers 1 and 4 are urgent, and nothing was said about thanks.
EXPECTED = [*["money", "urgent", "urgent", "money"], *["delivery", "urgent", "urgent", "delivery"]]
EXPECTED += [*["account", "urgent", "urgent", "account"], *["other", "urgent", "urgent", "other"]]
ROWS = [{"id": f"mail{number}", "number": number, "label": EXPECTED[number]} for number, *_ in MAILS]


@eval_task("triage", data=ROWS)
def test_triage(row, lm, lm_env):
    found = label_of(row["number"])
    lm.output(found)
    lm.score("right", found == row["label"])
