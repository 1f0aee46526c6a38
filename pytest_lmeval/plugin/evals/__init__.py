"""Eval functions under pytest: test functions become examples, run ahead of their turn, and report at it."""
