"""Run eval functions under pytest: make them examples, start them early, and report them in pytest's order."""
