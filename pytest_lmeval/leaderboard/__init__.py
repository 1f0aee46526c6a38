"""From results to rows to the board, and the board to JSON, Markdown and a terminal table."""
