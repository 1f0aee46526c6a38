"""Score an example's answers: thresholds, judges, quarantine."""
