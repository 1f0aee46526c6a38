"""Answers a bookshop's customers, who ask about an order."""

PROMPT = """You answer the customers of a bookshop.
Say in which state the order is, and what happens next."""


async def answer(ask, question, order):
    """Return the reply to a customer's question; ``ask`` sends messages to a model."""
    asked = f"{question}\nOrder {order['number']}: {order['state']}, next: {order['next']}"
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": asked}]
    return (await ask(messages)).text
