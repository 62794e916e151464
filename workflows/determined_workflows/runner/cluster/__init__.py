"""Runs a grid on the cluster: one experiment with the search method ``list``, one trial for each task.

``plan`` decides what is submitted, ``submission`` submits it, ``record`` remembers it in the output, and ``following``
prints what happens and fetches the outputs.
"""
