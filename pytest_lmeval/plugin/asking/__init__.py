"""Collect the items of task files, plan their run in this process, and run them."""
