"""Read and write the files of a run: ledger, board, recordings, shards."""
