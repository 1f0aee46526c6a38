"""Sort mails by what has to be done."""

from django.conf import settings
from mail.client import say
from mail.store import read


def prompt():
    """Return the rules as the settings have them."""
    rules = [f"Mails about {word} are {label}." for word, label in settings.MAIL_LABELS.items()]
    form = "Reply with the label alone."
    return "\n".join(["You sort the mail of a shop.", "Mails of gold customers are urgent.", *rules, form])


def label_of(number):
    """Return the label of a mail."""
    subject, kind = read(number)
    return say(prompt(), f"Customer: {kind}\nSubject: {subject}")
