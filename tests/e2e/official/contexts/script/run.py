"""A Core API script for any library named determined: prints the library, resumes, and obeys preemption."""

import logging
import math
import os
import pathlib
import time

import determined as det

ODD = (math.nan, math.inf, -math.inf)


def main() -> None:
    print("library:", det.__file__, "user:", os.getuid(), flush=True)
    for folder in filter(None, os.environ.get("LOOK_AT", "").split(":")):
        print("found:", folder, sorted(path.name for path in pathlib.Path(folder).iterdir()), flush=True)
    info = det.get_cluster_info()
    steps, pause = int(info.trial.hparams["steps"]), float(info.trial.hparams["seconds"])
    with det.core.init() as context:
        done = 0
        if info.latest_checkpoint is not None:
            with context.checkpoint.restore_path(info.latest_checkpoint) as path:
                done = int((path / "steps").read_text())
            print("resumed at", done, flush=True)
        while done < steps:
            done += 1
            context.train.report_training_metrics(
                steps_completed=done, metrics={"loss": 1 / done, "odd": ODD[done % 3], "word": "so"}
            )
            context.train.report_progress(done / steps)
            time.sleep(pause)
            stop = context.preempt.should_preempt()
            if stop or done == steps:
                with context.checkpoint.store_path({"steps_completed": done, "why": "stop" if stop else "end"}) as (
                    path,
                    _uuid,
                ):
                    (path / "steps").write_text(str(done))
            if stop:
                print("preempted at", done, flush=True)
                return
        context.train.report_validation_metrics(steps_completed=done, metrics={"loss": 1 / done, "odd": math.nan})


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    main()
