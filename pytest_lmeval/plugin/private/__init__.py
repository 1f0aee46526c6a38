"""Undocumented names of pytest, pytest-xdist and their plugins: a function for each says what holds without it.

No other folder of the plugin uses such a name; a test sees to that. Seen with pytest 8.4 to 9.2 and pytest-xdist 3.6 to
3.8, where no other version is named.
"""
