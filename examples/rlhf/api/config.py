from determined_workflows.rlhf.task.config import *
