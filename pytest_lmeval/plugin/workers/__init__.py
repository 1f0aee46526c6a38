"""Support pytest-xdist: hand out batches to workers, and keep their messages small."""
