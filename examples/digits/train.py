"""The same trial with the loop in the user's hand: ``pytorch.init`` and ``Trainer.fit``."""

import logging

from model_def import DigitsTrial

import determined as det
from determined import pytorch

DEFAULTS = {"global_batch_size": 64, "learning_rate": 0.05, "hidden": 128, "dropout": 0.25, "batches": 480}


def main() -> None:
    info = det.get_cluster_info()
    hparams = DEFAULTS if info is None else info.trial.hparams
    with pytorch.init(hparams=hparams, aggregation_frequency=2) as context:
        trainer = pytorch.Trainer(DigitsTrial(context), context)
        trainer.fit(
            max_length=pytorch.Batch(context.get_hparam("batches")),
            reporting_period=pytorch.Batch(20),
            validation_period=pytorch.Batch(60),
            checkpoint_period=pytorch.Batch(120),
            latest_checkpoint=info.latest_checkpoint if info is not None else None,
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s")
    main()
