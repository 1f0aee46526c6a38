"""Adapters: the only model-specific code. :mod:`.protocol` says what one is."""
