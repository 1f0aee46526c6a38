"""The adapters, which are the only model-specific code; :mod:`.protocol` defines their interface."""
