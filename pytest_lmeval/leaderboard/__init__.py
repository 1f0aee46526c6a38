"""Aggregate results into rows, and rows into the board."""
