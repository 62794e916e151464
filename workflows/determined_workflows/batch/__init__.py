"""Job scripts for Slurm: the command file of a project runs on Slurm, a cluster, or this machine (`det batch`)."""
