"""Answers questions about a bookshop from its own pages: finds those that fit, and asks a model with them."""

import re

PAGES = {
    "hours": "The shop is open from 9 to 18, on Saturday until 14.",
    "delivery": "A parcel takes 3 days. Delivery is 4 euros, and free from 30 euros on.",
    "returns": "A book can be sent back within 14 days. The label is in the parcel.",
    "vouchers": "A voucher is valid for 3 years, and for more than one order.",
    "payment": "You can pay by card or transfer. The invoice is in the parcel.",
    "signed": "A signed book has a star on the back. It costs 5 euros more, and is no gift.",
}
TOP = 2


def words(text):
    """Return the words of a text, in lower case."""
    return {*re.findall(r"\w+", text.lower())}


def find_pages(question, top=TOP):
    """Return the names of the pages that share most words with a question."""
    return sorted(PAGES, key=lambda name: -len(words(question) & words(PAGES[name])))[:top]


async def answer(ask, question, pages):
    """Return the answer to a question; ``ask`` sends a prompt to a model, ``pages`` are what it may know."""
    known = "\n".join(PAGES[name] for name in pages)
    reply = await ask(f"Answer from these pages alone, in one sentence.\n\n{known}\n\nQuestion: {question}")
    return reply.text
