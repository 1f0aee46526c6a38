"""Scorers, which give the answer of a row a score or other fields."""
