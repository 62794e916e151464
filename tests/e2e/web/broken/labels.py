"""A simulated training that ends with an error at a batch without labels."""

import sys

BATCHES = 140
BROKEN = 97


def main():
    print("\033[1mreading digits\033[0m: 4480 pictures in 140 batches", flush=True)
    for batch in range(1, BATCHES + 1):
        if batch == BROKEN - 4:
            print("WARNING: batch 93 has 2 labels twice", flush=True)
        if batch == BROKEN:
            print(f"ERROR: batch {batch} cannot be read: 3 of its 32 pictures have no label", flush=True)
            print("INFO: stopping; nothing was saved since batch 90", flush=True)
            return 1
        print(
            f"INFO: batch {batch:3}: loss {2.3 / (1 + batch / 20):.4f}, \033[32m{32 * batch}\033[0m pictures",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
