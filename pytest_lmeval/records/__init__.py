"""Files of a run, one writer and one reader each: ledger, board, recordings, shards."""
