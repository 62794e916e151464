from determined_workflows.rlhf.task.data import *
