"""Programs that run on the nodes of a job. They are copied beside the job script and need Python 3.7 alone."""
