"""Convert a config of promptfoo: tests become data files with checks, and providers become profiles.

A config passes these modules in order: ``config`` reads it, ``prompts``, ``cases`` and ``providers`` interpret it,
``checks`` (with ``templates``) turns assertions into checks, and ``bring_in`` makes the files. ``reasons`` has
messages.
"""
