"""Collect the items of task files, plan how this process runs them, and run them."""
