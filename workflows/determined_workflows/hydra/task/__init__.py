"""Files that travel in the context as ``.det_hydra``, and run inside the task: standard library and Hydra only."""
