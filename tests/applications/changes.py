"""Changes to the applications ``app_*``, as pull requests make them, and what a run says beside the baseline."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HARMLESS", "PLANTED", "Change"]


@dataclass(frozen=True, slots=True)
class Change:
    """Texts replaced in one file of an application, the verdict of the run, and the beginnings of its reasons."""

    app: str
    file: str
    edits: dict[str, str]
    verdict: str = "pass"
    words: tuple[str, ...] = ()


DESK, PAGES, DENTIST = "desk.py", "service.py", "dentist.py"
SORTING, STORE, CLIENT = "services/triage/sorting.py", "libs/mail/store.py", "libs/mail/client.py"
SWALLOWED = """\
    try:
        query = "select name, state from bookings join bikes on bikes.id = bookings.bike where number = ?"
        bike, status = database().execute(query, [number]).fetchone()
    except Exception:
        return {}
"""
RETRY = """\
    for _ in range(2):
        label = say(prompt(), f"Customer: {kind}\\nSubject: {subject}")
        if label in settings.MAIL_LABELS.values():
            return label
    return "other"
"""
QUERY = 'query = "select bikes.name, status from bookings join bikes on bikes.id = bookings.bike where number = ?"'
FETCHED = "    bike, status = database().execute(query, [number]).fetchone()\n"
RERANKED = "        texts = reranked(client, q, texts, headers=headers)\n"
LONG = "Say it as a friend would say it to a friend, and be glad that the visitor asks."

PLANTED = {
    "a rule taken out of the prompt": Change(
        "desk",
        DESK,
        {"Look a booking up with find_booking before you answer.\n": ""},
        "regression",
        (
            "desk: regression: 1.0000 -> 0.4444, -55.6 points (at least 18.4, at most 77.9), 10 worse and 0 better",
            "desk.calls: 0.0556 is below its floor 0.9",
            "desk: 1 request per example now, in the baseline 2 (-50 %)",
        ),
    ),
    "a tool renamed": Change(
        "desk",
        DESK,
        {"def find_booking(": "def lookup(", "TOOLS = [find_booking,": "TOOLS = [lookup,"},
        "regression",
        ("desk: regression: 1.0000 -> 0.4444, ", "desk.calls: 0.0556 is below its floor 0.9"),
    ),
    "an exception swallowed": Change(
        "desk",
        DESK,
        {f"    {QUERY}\n{FETCHED}": SWALLOWED},
        "regression",
        ("desk: regression: 1.0000 -> 0.0556, ", "desk.calls: inconclusive: 1.0000 -> 0.9444, "),
    ),
    # The answers are the same: the calls of tools and the amounts tell.
    "asked twice": Change(
        "desk",
        DESK,
        {"        reply = respond(client, items)\n": "        reply = respond(client, items)\n" * 2},
        "regression",
        (
            "desk.calls: regression: 1.0000 -> 0.0556, ",
            "desk: 4 requests per example now, in the baseline 2 (+100 %)",
            "desk: 254.4 tokens per example now, in the baseline 127.2 (+100 %)",
            "overall: no regression: 1.0000 -> 1.0000, ",
        ),
    ),
    "a retriever off by one": Change(
        "pages",
        PAGES,
        {"context = texts[0]": "context = texts[1]"},
        "regression",
        ("pages: regression: 1.0000 -> 0.0000, ", "pages.found: 0.0000 is below its floor 0.9"),
    ),
    # The right page is found, and the answer is in the part that is gone.
    "the context cut": Change(
        "pages",
        PAGES,
        {"context = texts[0]": "context = texts[0][:40]"},
        "regression",
        ("pages: regression: 1.0000 -> 0.0000, ",),
    ),
    "another model": Change(
        "pages",
        PAGES,
        {'"gpt-4o"': '"gpt-4o-mini"'},
        "regression",
        (
            "pages: regression: 1.0000 -> 0.0000, ",
            "pages: requests ask for gpt-4o-mini (16) now, in the baseline for gpt-4o (16)",
        ),
    ),
    # Three of sixteen answers are too few for the test; the floor of the score and the requests tell.
    "no reranker": Change(
        "pages",
        PAGES,
        {RERANKED: ""},
        "floor",
        (
            "pages.found: 0.8125 is below its floor 0.9",
            "pages: inconclusive: 1.0000 -> 0.8125, ",
            "pages: 2 requests per example now, in the baseline 3 (-33 %)",
            "pages: 58.5 tokens per example now, in the baseline 66.5 (-12 %)",
        ),
    ),
    "the history cut": Change(
        "talk",
        DENTIST,
        {"MEMORY = 20": "MEMORY = 1"},
        "regression",
        (
            "dentist: regression: 1.0000 -> 0.0000, ",
            "dentist: 5 requests per example now, in the baseline 3 (+67 %)",
        ),
    ),
    "a temperature": Change(
        "talk",
        DENTIST,
        {"OPTIONS = {}": 'OPTIONS = {"temperature": 1.4}'},
        "regression",
        ("dentist: regression: 1.0000 -> ", "dentist: requests have temperature 1.4 ("),
    ),
    "a wrong join": Change(
        "mono",
        STORE,
        {"customers.id = mails.customer": "customers.id = mails.branch"},
        "regression",
        ("triage: regression: 1.0000 -> 0.0000, ",),
    ),
    "a retry that hides failures": Change(
        "mono",
        SORTING,
        {
            "Reply with the label alone.": "Reply with the label.",
            '    return say(prompt(), f"Customer: {kind}\\nSubject: {subject}")\n': RETRY,
        },
        "regression",
        (
            "triage: regression: 1.0000 -> 0.1250, ",
            "triage: 2 requests per example now, in the baseline 1 (+100 %)",
        ),
    ),
}
HARMLESS = {
    "the tools' order and words": Change(
        "desk", DESK, {"[find_booking, refund]": "[refund, find_booking]", "Look a booking up by": "Find a booking by"}
    ),
    "a query written otherwise": Change("desk", DESK, {QUERY: QUERY.replace("bikes.id = bookings.bike", "bike = id")}),
    "a comment": Change("desk", DESK, {'MODEL = "gpt-4o"': 'MODEL = "gpt-4o"  # the best that we can afford'}),
    "more candidates": Change("pages", PAGES, {"CANDIDATES = 4": "CANDIDATES = 6"}),
    "two words in the prompt": Change("pages", PAGES, {"a sentence of theirs.": "a sentence of theirs. Be kind."}),
    "a longer prompt": Change(
        "pages",
        PAGES,
        {"a sentence of theirs.": f"a sentence of theirs. {LONG}"},
        words=("pages: 84.5 tokens per example now, in the baseline 66.5 (+27 %)",),
    ),
    "a longer memory": Change("talk", DENTIST, {"MEMORY = 20": "MEMORY = 60"}),
    "other words in the prompt": Change("talk", DENTIST, {"Once you know both": "As soon as you know both"}),
    "a client's timeout": Change("talk", DENTIST, {"OPTIONS = {}": 'OPTIONS = {"timeout": 30}'}),
    "another cache of the client": Change("mono", CLIENT, {"@functools.lru_cache(maxsize=1)": "@functools.cache"}),
    "the rules' order": Change("mono", SORTING, {"MAIL_LABELS.items()]": "MAIL_LABELS.items()][::-1]"}),
    "a long rule": Change(
        "mono",
        SORTING,
        {"You sort the mail of a shop.": f"You sort the mail of a shop. {LONG}"},
        words=("triage: 59 tokens per example now, in the baseline 41 (+44 %)",),
    ),
}
