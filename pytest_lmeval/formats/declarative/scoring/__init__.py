"""Scorers: what a row's answer is worth, and what else is found out about it."""
