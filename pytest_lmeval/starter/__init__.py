"""The files of ``lmeval init``, and the settings files of pytest that it adds to."""
