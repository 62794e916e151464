"""Joins the other workers under one launcher, sums a number with them and prints the sum: ``first_collective.py
LAYER``."""

import sys

import torch


def total(layer: str) -> float:
    value = torch.ones(1)
    if layer == "horovod":
        import horovod.torch as hvd

        hvd.init()
        return float(hvd.allreduce(value, op=hvd.Sum))
    if layer == "deepspeed":
        import deepspeed

        # otherwise every start would look for a compiler, with and without our layer
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
        deepspeed.init_distributed()
    else:
        torch.distributed.init_process_group("gloo")
    torch.distributed.all_reduce(value)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    return float(value)


if __name__ == "__main__":
    sys.stdout.write(
        f"first collective: {total(sys.argv[1]):g} workers\n"
    )  # one write per line, since the workers share the stream
    sys.stdout.flush()
