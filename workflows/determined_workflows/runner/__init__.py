"""The grid runner: runs pipelines of commands for each point of a grid, on this machine and without a cluster.

A newcomer reads ``params_file`` (the file), ``grid`` (its tasks), ``execution`` (workers) and ``examine`` (results).
"""
