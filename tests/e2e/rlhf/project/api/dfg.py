from determined_workflows.rlhf.task.dataflow import *
