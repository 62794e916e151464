import { clsx } from "clsx";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "@/components/base/Button";
import { Dialog } from "@/components/base/Dialog";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { useSay } from "@/components/base/Toasts";
import { escapeControl } from "@/format/escapeControl";
import { bytes, figure } from "@/format/number";
import { hasEnded } from "@/format/states";
import { useApiMutation } from "@/hooks/useApiMutation";
import {
  type CheckpointPolicy,
  policyOf,
  type PolicyPreview,
  policyPreviewQuery,
  setCheckpointPolicy,
} from "@/services/checkpointPolicy";
import { checkpointLists } from "@/services/checkpoints";
import type { Experiment } from "@/services/experiments";
import dialogStyles from "@/components/base/Dialog.module.css";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./PolicyDialog.module.css";

const DISPLAY_LIMIT = 200;
const MAX_NUMBER = 2 ** 31 - 1;
const NUMBERS: readonly { name: keyof CheckpointPolicy; title: string }[] = [
  { name: "saveExperimentBest", title: "Best of the experiment" },
  { name: "saveTrialBest", title: "Best of each trial" },
  { name: "saveTrialLatest", title: "Latest of each trial" },
];

interface Props {
  experiment: Experiment;
  onClose: () => void;
}

/** The checkpoint policy: three numbers, the checkpoints that they would delete, and a confirmation before that. */
export function PolicyDialog({ experiment, onClose }: Props) {
  const { id, state } = experiment;
  const say = useSay();
  const [texts, setTexts] = useState(() => textsOf(policyOf(experiment)));
  const [confirming, setConfirming] = useState(false);
  const policy = policyFrom(texts);
  const [asked, setAsked] = useState(() => policyOf(experiment));
  const preview = useQuery({ ...policyPreviewQuery(id, asked), placeholderData: keepPreviousData, staleTime: 0 });
  const { mutate: save, isPending } = useApiMutation({
    mutationFn: () => setCheckpointPolicy(id, asked),
    onSuccess: () => {
      say({ text: `Set the checkpoint policy of experiment ${id}` });
      onClose();
    },
    invalidates: [["experiment", String(id)], checkpointLists()],
  });
  const isShown = preview.data !== undefined && !preview.isPlaceholderData;
  const deleted = isShown ? preview.data.checkpoints : [];
  const deletesNow = hasEnded(state) && deleted.length > 0;
  const change = (name: keyof CheckpointPolicy, text: string) => {
    const next = { ...texts, [name]: text };
    setTexts(next);
    const valid = policyFrom(next);
    if (valid) setAsked(valid);
  };
  if (confirming) {
    return (
      <Dialog open onClose={() => setConfirming(false)} title={`Delete ${counted(deleted.length)}?`}>
        <p>
          {counted(deleted.length)} of experiment {id} with {bytes(sizeOf(deleted))}{" "}
          {deleted.length === 1 ? "is" : "are"} deleted for good.
        </p>
        <div className={dialogStyles.foot}>
          <Button onClick={() => setConfirming(false)} autoFocus>
            Cancel
          </Button>
          <Button kind="danger" busy={isPending} onClick={() => save()}>
            Set the policy and delete
          </Button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog open onClose={onClose} title={`Checkpoint policy of experiment ${id}`} wide kept>
      <div className={styles.numbers} role="group" aria-label="Checkpoints to keep">
        {NUMBERS.map(({ name, title }) => (
          <label key={name} className={layout.field}>
            <span>{title}</span>
            <input
              type="number"
              min={0}
              max={MAX_NUMBER}
              step={1}
              value={texts[name]}
              aria-invalid={numberFrom(texts[name]) === null}
              onChange={(event) => change(name, event.target.value)}
            />
          </label>
        ))}
      </div>
      <p className={typography.hint}>
        {hasEnded(state)
          ? "Its other checkpoints are deleted. A checkpoint from which a trial was started is kept."
          : "The policy is applied when the experiment ends. If it ended now, these checkpoints would be deleted:"}
      </p>
      {policy === null ? (
        <p className={typography.problem} role="alert">
          Each number must be a whole number from 0 to {MAX_NUMBER}.
        </p>
      ) : (
        <Preview preview={preview} />
      )}
      <div className={dialogStyles.foot}>
        <Button onClick={onClose}>Cancel</Button>
        <Button
          kind={deletesNow ? "danger" : "primary"}
          why={policy === null ? "A number is not valid" : isShown ? undefined : "The preview is not there yet"}
          busy={isPending}
          onClick={() => (deletesNow ? setConfirming(true) : save())}
        >
          {deletesNow ? `Delete ${counted(deleted.length)}…` : "Set the policy"}
        </Button>
      </div>
    </Dialog>
  );
}

interface PreviewProps {
  preview: { data: PolicyPreview | undefined; error: Error | null; refetch: () => unknown };
}

function Preview({ preview: { data, error, refetch } }: PreviewProps) {
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  if (!data) return <Loading what="the checkpoints" />;
  const { checkpoints, metricName } = data;
  if (checkpoints.length === 0) return <p>No checkpoint would be deleted.</p>;
  return (
    <>
      <div className={styles.preview} tabIndex={0} role="region" aria-label="Checkpoints that would be deleted">
        <table className={clsx(layout.table, layout.cardTable)}>
          <thead>
            <tr>
              <th>Trial</th>
              <th className={layout.numberCell}>Step</th>
              <th className={layout.numberCell}>{escapeControl(metricName)}</th>
              <th className={layout.numberCell}>Size</th>
              <th>Checkpoint</th>
            </tr>
          </thead>
          <tbody>
            {checkpoints.slice(0, DISPLAY_LIMIT).map((each) => (
              <tr key={each.uuid}>
                <td data-label="Trial">{each.trialId}</td>
                <td data-label="Step" className={layout.numberCell}>
                  {each.steps}
                </td>
                <td data-label={escapeControl(metricName)} className={layout.numberCell}>
                  {figure(each.metric)}
                </td>
                <td data-label="Size" className={layout.numberCell}>
                  {bytes(each.size)}
                </td>
                <td data-label="Checkpoint">
                  <code>{each.uuid}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p>
        {counted(checkpoints.length)} with {bytes(sizeOf(checkpoints))}
        {checkpoints.length > DISPLAY_LIMIT && `; the first ${DISPLAY_LIMIT} are shown`}
      </p>
    </>
  );
}

type Texts = Record<keyof CheckpointPolicy, string>;

function textsOf(policy: CheckpointPolicy): Texts {
  return {
    saveExperimentBest: String(policy.saveExperimentBest),
    saveTrialBest: String(policy.saveTrialBest),
    saveTrialLatest: String(policy.saveTrialLatest),
  };
}

/** Returns null if a text is not a number. */
function policyFrom(texts: Texts): CheckpointPolicy | null {
  const [best, trialBest, latest] = NUMBERS.map(({ name }) => numberFrom(texts[name]));
  if (best == null || trialBest == null || latest == null) return null;
  return { saveExperimentBest: best, saveTrialBest: trialBest, saveTrialLatest: latest };
}

function numberFrom(text: string): number | null {
  return /^\d{1,10}$/.test(text) && Number(text) <= MAX_NUMBER ? Number(text) : null;
}

const counted = (count: number) => (count === 1 ? "1 checkpoint" : `${count} checkpoints`);
const sizeOf = (checkpoints: readonly { size: number }[]) => checkpoints.reduce((sum, { size }) => sum + size, 0);
