"""Evals of the desk: what a customer is told, and which tools are called for it."""

import desk

from pytest_lmeval import eval_task

STATUS = {number: status for number, _, status in desk.BOOKINGS}
ASKED = ["How about {}?", "Is {} all right?", "I booked {}, didn't I?"]
ROWS = [
    *[
        {"id": f"{number}-{place}", "question": asked.format(number), "expected": status, "calls": ["find_booking"]}
        for number, status in STATUS.items()
        for place, asked in enumerate(ASKED)
    ],
    {
        "id": "money",
        "question": "I want my money back for B12",
        "expected": "refunded",
        "calls": ["find_booking", "refund"],
    },
    {"id": "no-money", "question": "I want my money back for B11", "expected": "paid", "calls": ["find_booking"]},
    {"id": "hours", "question": "When do you open?", "expected": "9 to 18", "calls": []},
]


@eval_task("desk", data=ROWS, threads=True, min_score={"calls": 0.9})
def test_desk(row, lm):
    reply = desk.answer(lm.client(desk.CLIENT), row["question"], [lm.tool(function) for function in desk.TOOLS])
    lm.output(reply)
    lm.score("right", row["expected"] in reply)
    lm.score("calls", lm.match(row["calls"]))
