"""Show a leaderboard and a verdict in the terminal, as Markdown, on GitHub and as HTML."""
