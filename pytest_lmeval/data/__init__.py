"""Data files to rows."""
