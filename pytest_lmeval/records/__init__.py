"""Files of a run, one writer and one reader each: the ledger, the board, shards."""
