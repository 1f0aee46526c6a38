"""The shape of a declarative task, as pydantic models: what is read is checked by them, and their schema ships."""
