"""RLHF experiments: several models, data workers and a master worker that drives a dataflow of calls, in one trial.

The package ``task`` travels in the context of the experiment and runs inside its trial.
"""
