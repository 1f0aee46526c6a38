# The model plants the key in every field of its answers that holds text, whatever fields there are.

import dataclasses
import json
import logging
import os

from pytest_lmeval import AdapterError, Completion
from pytest_lmeval.types import ToolCall

KEY = os.environ["MY_MODEL"]


def planted(**given):
    values: dict = {}
    for field in dataclasses.fields(Completion):
        kind = str(field.type)
        if "ToolCall" in kind:
            values[field.name] = (ToolCall(KEY, f"tool {KEY}", json.dumps({KEY: KEY})),)
        elif kind.startswith(("Mapping", "dict")):
            values[field.name] = {f"key {KEY}": f"value {KEY}"}
        elif kind.startswith(("tuple[str", "Sequence[str", "list[str")):
            values[field.name] = (f"{field.name} {KEY}",)
        elif kind in ("str", "str | None"):
            values[field.name] = f"{field.name} {KEY}"
    values["extra"] = json.dumps({"message": {"echo": KEY}, "kept": {KEY: [KEY]}})
    return Completion(**{**values, **given})


class Model:
    name = "planted.v1"

    def __init__(self, api_key_env="", **options):
        self.manifest = {"id": "m", "note": f"note {KEY}"}

    async def complete(self, request):
        logging.getLogger("model").warning("the adapter logs %s", KEY)
        text = request.text
        if "raise" in text:
            raise RuntimeError(f"the adapter raises {KEY}")
        if "refuse" in text:
            raise AdapterError(f"the adapter refuses {KEY}")
        if "exactly the key" in text:
            return planted(text=KEY, tool_calls=())
        if "polite" in text:
            return planted(text=f"yes {KEY}", tool_calls=())
        return planted()
