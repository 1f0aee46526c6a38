"""The telephone of a dentist: a conversation that LangGraph keeps, with replies of a fixed shape."""

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import BaseModel

MODEL = "gpt-4o"
OPTIONS = {}
MEMORY = 20
PROMPT = """You answer the telephone of a dentist.
Ask for the name and for the day of an appointment.
Once you know both, book it and say so."""


class Reply(BaseModel):
    """What the assistant says, and whether an appointment is made."""

    say: str
    booked: bool


def graph_of(chat):
    """Return the application; ``chat`` is a chat model of LangChain."""
    speaking = chat.with_structured_output(Reply, method="json_schema")

    async def ask(state):
        reply = await speaking.ainvoke([("system", PROMPT), *state["messages"][-MEMORY:]])
        return {"messages": [("ai", reply.say)]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    return graph.compile(checkpointer=InMemorySaver())


async def reply_to(graph, thread, said):
    """Return what is answered to a message of this conversation."""
    state = await graph.ainvoke({"messages": [("user", said)]}, {"configurable": {"thread_id": thread}})
    return state["messages"][-1].content
