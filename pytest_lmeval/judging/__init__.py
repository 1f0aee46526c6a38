"""Judges: the verdicts they give, the prompts they get, and how their replies are read and summed up."""
