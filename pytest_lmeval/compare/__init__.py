"""Compare boards: pairs, changes, warnings, and the decision of the gate."""
