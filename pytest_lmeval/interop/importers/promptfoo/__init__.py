"""promptfoo: prompts x tests x assertions to data files with checks, providers to profiles.

A config passes these modules in order: ``config`` reads it, ``prompts``, ``cases`` and ``providers`` interpret it,
``checks`` (with ``templates``) turns assertions into checks, ``bring_in`` makes the files. ``reasons`` has messages.
"""
