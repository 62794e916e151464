"""What a trial of a grid runs on the cluster: the standard library and ``determined.core`` only."""
