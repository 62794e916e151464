"""Prints and reports all texts of ``payloads.json``, then fails with a hostile message."""

import json
import sys

from determined import core


def main():
    with open("payloads.json", encoding="utf-8") as file:
        payloads = json.load(file)
    with core.init() as context:
        for text in payloads["lines"]:
            print(text, flush=True)
            print(text, file=sys.stderr, flush=True)
        print("long line: " + "ß" * payloads["long"], flush=True)
        for step in range(1, 4):
            context.train.report_training_metrics(step, {name: float(step) for name in payloads["names"]})
        odd = [float("nan"), float("inf"), float("-inf"), 1.0, 2.0]
        for step, value in enumerate(odd, 1):
            context.train.report_validation_metrics(step, {"odd": value, "validation_loss": value})
        context.train.report_training_metrics(4, {f"metric {number:04}": number for number in range(payloads["many"])})
        with context.checkpoint.store_path({"steps_completed": 5, payloads["lines"][0]: payloads["lines"][1]}) as (
            path,
            _,
        ):
            (path / "state").write_text("")
        raise RuntimeError(" ".join(payloads["lines"]))


if __name__ == "__main__":
    main()
