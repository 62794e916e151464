from determined_workflows.rlhf.task.config import *  # noqa: F403
