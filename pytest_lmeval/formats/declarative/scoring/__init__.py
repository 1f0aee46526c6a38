"""Score the answer of a row, or find other fields for it."""
