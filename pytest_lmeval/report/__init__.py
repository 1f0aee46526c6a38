"""A board and a verdict for people: terminal, Markdown, GitHub, HTML."""
