"""Folders that lm-evaluation-harness wrote with ``--log_samples``, to a ledger.

``folder`` finds and checks the files, ``samples`` makes a result of each sample, ``bring_in`` the run of all of them.
"""
