"""Pydantic models of a declarative task: they check what is read, and their schema ships."""
