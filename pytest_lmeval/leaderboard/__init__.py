"""From results to rows, and from rows to the board."""
