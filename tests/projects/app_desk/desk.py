"""The desk of a bicycle rental: an agent with tools, which asks a model through OpenAI's Responses interface."""

import json
import sqlite3

import openai

CLIENT = openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="production", max_retries=0)
MODEL = "gpt-4o"
PROMPT = """You work at the desk of a bicycle rental. It is open from 9 to 18.
Look a booking up with find_booking before you answer.
If a customer wants money back for a cancelled booking, call refund.
Answer in one sentence."""
BIKES = [(1, "tandem"), (2, "racer"), (3, "tricycle")]
BOOKINGS = [("B11", 1, "paid"), ("B12", 2, "cancelled"), ("B13", 3, "open"), ("B14", 1, "paid"), ("B15", 2, "lost")]


def database():
    """Return the rental's database."""
    found = sqlite3.connect(":memory:")
    found.execute("create table bikes (id, name)")
    found.execute("create table bookings (number, bike, status)")
    found.executemany("insert into bikes values (?, ?)", BIKES)
    found.executemany("insert into bookings values (?, ?, ?)", BOOKINGS)
    return found


def find_booking(number: str) -> dict[str, str]:
    """Look a booking up by its number."""
    query = "select bikes.name, status from bookings join bikes on bikes.id = bookings.bike where number = ?"
    bike, status = database().execute(query, [number]).fetchone()
    return {"bike": bike, "status": status}


def refund(number: str) -> dict[str, bool]:
    """Give the money for a booking back."""
    return {"refunded": True}


TOOLS = [find_booking, refund]


def offered(function):
    """Return what the model is told of a tool."""
    number = {"type": "object", "properties": {"number": {"type": "string"}}, "required": ["number"]}
    schema = {**number, "additionalProperties": False}
    told = {"name": function.__name__, "description": function.__doc__, "parameters": schema}
    return {"type": "function", "strict": True, **told}


def respond(client, items):
    """Ask the model once."""
    return client.responses.create(model=MODEL, instructions=PROMPT, input=items, tools=[*map(offered, TOOLS)])


def answer(client, question, tools):
    """Return the answer to a customer; the model may call the tools before it answers."""
    by_name = {function.__name__: function for function in tools}
    items = [{"role": "user", "content": question}]
    for _ in range(4):
        reply = respond(client, items)
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            return reply.output_text
        items += reply.output
        for call in calls:
            result = json.dumps(by_name[call.name](**json.loads(call.arguments)))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    raise RuntimeError("no answer after four rounds")
