"""The controlling process: results received, the ledger, the board, the verdict."""
