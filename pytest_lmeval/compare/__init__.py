"""Compare boards: pairs, changes, warnings, and the gate's decision."""
