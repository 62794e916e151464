"""A plain script with one training step that prints one line."""

import torch

torch.set_num_threads(1)
model = torch.nn.Linear(64, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(32, 64)).sum().backward()
optimizer.step()
print("first step done", flush=True)
