from determined_workflows.rlhf.task.language_models import *
