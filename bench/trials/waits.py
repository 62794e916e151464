"""A worker that waits to be killed; no torch, so that starting it again is quick."""

import time

print("waits", flush=True)
time.sleep(3600)
