"""A model that needs no network: it goes by words, and by what the prompt says of the departments."""

WORDS = {
    "billing": ("charged", "invoice", "voucher", "bill", "money"),
    "returns": ("back", "torn"),
    "orders": ("order", "parcel", "swap"),
}


class Model:
    name = "scripted.v1"

    def generate(self, prompts):
        return [self.reply(*prompt.split("\n\n")) for prompt in prompts]

    def reply(self, question, message):
        found = next(name for name, words in WORDS.items() if any(word in message for word in words))
        if "sent back" in question and ("back" in message or "swap" in message):
            found = "returns"
        return found if "alone" in question else f"That is one for {found}."
