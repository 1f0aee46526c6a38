"""Read and write a run's files: ledgers, leaderboards, recordings and shards."""
