"""A bookshop's chat: one object for each conversation."""

PROMPT = """You take orders back for a bookshop.
Ask for the number of the order before anything else.
Once you have it, say that the money is back in three days."""


class Chat:
    """What was said so far; ``ask`` sends messages to a model."""

    def __init__(self, ask):
        self.ask = ask
        self.messages = [{"role": "system", "content": PROMPT}]

    async def answer(self, said):
        """Return the reply to what the customer said."""
        self.messages.append({"role": "user", "content": said})
        reply = (await self.ask(self.messages)).text
        self.messages.append({"role": "assistant", "content": reply})
        return reply
