"""Score the answers to an example: thresholds, judges, quarantine."""
