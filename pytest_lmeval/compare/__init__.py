"""Boards against boards: pairs, changes, warnings, and what the gate decides."""
