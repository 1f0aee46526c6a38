"""Send requests to adapters, with batches, windows, retries, limits and the cache."""
