"""The provider of type ``slurm``: each job of Slurm is a pilot, an agent for as long as Slurm lets it run."""
