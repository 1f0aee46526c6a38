"""Send requests to adapters: batches, windows, retries, limits, the cache."""
