"""A worker that waits to be killed. It does not import torch, so that it restarts quickly."""

import time

print("waits", flush=True)
time.sleep(3600)
