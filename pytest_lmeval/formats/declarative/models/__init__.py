"""Pydantic models of a declarative task, which validate the file and define its JSON Schema."""
