"""Hydra projects: checks their configuration, runs them on the cluster, and continues what was interrupted.

A newcomer reads ``composition`` (what Hydra makes of a script and its overrides), ``check`` and ``resume`` (commands),
``submission`` (one experiment of one or more jobs) and ``task/run_job`` (what runs inside the task). The package
``composer`` is a program that runs under the user's Python.
"""
