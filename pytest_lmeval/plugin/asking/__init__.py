"""Collect, plan and run the items of task files in this process."""
