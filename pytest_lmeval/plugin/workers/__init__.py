"""Support pytest-xdist: hand out batches to workers, and keep messages small."""
