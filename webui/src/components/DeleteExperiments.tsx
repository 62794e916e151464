import { ExperimentNames } from "./ExperimentNames";
import { TypedConfirmation } from "./TypedConfirmation";

interface Props {
  open: boolean;
  onClose: () => void;
  ids: readonly number[];
  run: () => void;
}

/** The confirmation before experiments are deleted, on an experiment's page and in the list. */
export function DeleteExperiments({ open, onClose, ids, run }: Props) {
  const counted = ids.length === 1 ? "1 experiment" : `${ids.length} experiments`;
  return (
    <TypedConfirmation
      open={open}
      onClose={onClose}
      title={`Delete ${counted}?`}
      word={`delete ${counted}`}
      action="Delete"
      run={run}
    >
      <ExperimentNames ids={ids} />
      <p>Trials, metrics, logs and checkpoints are deleted for good.</p>
    </TypedConfirmation>
  );
}
