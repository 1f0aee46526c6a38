"""Scorers, which assign a score or other fields to a row."""
