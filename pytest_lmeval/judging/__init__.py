"""Ask judges: prompts, verdicts, and the parsing and summary of replies."""
