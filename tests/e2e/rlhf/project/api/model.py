from determined_workflows.rlhf.task.model import *  # noqa: F403
