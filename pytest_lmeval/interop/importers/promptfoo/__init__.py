"""promptfoo: prompts x tests x assertions to data files with checks, providers to profiles.

The modules in the order that a config passes them: ``nodes`` and ``files`` read it, ``prompts``, ``cases`` (with
``csv_cases``) and ``providers`` say what is in it, ``checks`` (with ``templates``) what an assertion becomes,
``documents`` what is written. The texts of ``reasons`` say why something is left out.
"""
