"""Pydantic models of a declarative task, which check the file and give its JSON Schema."""
