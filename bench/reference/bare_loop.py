"""The plain training loop that the harness is compared with: ``bare_loop.py STEPS RESULT_FILE``."""

import sys

import torch
from clock import Clock
from digits_like import dataset, network


def main(steps: int, result: str) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    loader = torch.utils.data.DataLoader(dataset(), batch_size=32, shuffle=True)
    clock = Clock(steps)
    while clock.count < steps:
        for pictures, labels in loader:
            clock.tick()
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(pictures), labels).backward()
            optimizer.step()
            if clock.count == steps:
                break
    clock.write(result)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
