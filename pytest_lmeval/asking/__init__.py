"""From requests to responses, and from responses to results: batches, faults, thresholds, the ledger."""
