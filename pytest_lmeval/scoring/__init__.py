"""From the answers to one example to its result: scores, thresholds, judges, quarantine."""
