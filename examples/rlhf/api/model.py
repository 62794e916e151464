from determined_workflows.rlhf.task.model import *
