"""Judges: their verdicts and prompts, and the parsing and summing up of their replies."""
