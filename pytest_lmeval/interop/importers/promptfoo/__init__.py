"""Convert a promptfoo config: tests become data files with checks, and providers become profiles.

A config passes through the modules of this package in order. ``config`` reads the config, and ``prompts``, ``cases``
and ``providers`` interpret its parts. ``checks``, with ``templates``, turns assertions into checks, and ``bring_in``
makes the files. ``reasons`` contains the messages about parts without a counterpart.
"""
