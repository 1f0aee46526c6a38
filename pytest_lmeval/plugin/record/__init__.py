"""Record a run in the controlling process: results, ledger, board, verdict."""
