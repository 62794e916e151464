from determined_workflows.rlhf.task.named_array import *
