"""The client that all packages of the repository share, made once."""

import functools

import openai
from django.conf import settings


@functools.lru_cache(maxsize=1)
def client():
    """Return the client, which reads its address and its key from the environment."""
    return openai.OpenAI(max_retries=0, timeout=settings.MAIL_TIMEOUT)


def say(system, text, **options):
    """Return what the model says to a text."""
    talk = [{"role": "system", "content": system}, {"role": "user", "content": text}]
    reply = client().chat.completions.create(model=settings.MAIL_MODEL, messages=talk, **options)
    return reply.choices[0].message.content
