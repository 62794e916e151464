"""Files that run inside the trial of an RLHF experiment: standard library, torch and numpy; the rest when it is used.

A newcomer reads ``config`` (what an experiment is made of), ``dataflow`` (what a step does), ``named_array`` and
``streams`` (how workers exchange data).
"""
