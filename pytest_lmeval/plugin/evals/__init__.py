"""Run eval functions under pytest: test functions become examples, start early, and report in pytest's order."""
