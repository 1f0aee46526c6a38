"""From a file on disk to tasks: one module per format, all yielding the ``Task`` of :mod:`.task`."""
