"""Show a board and a verdict to people: in the terminal, as Markdown, on GitHub, as HTML."""
