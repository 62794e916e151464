import { clsx } from "clsx";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useSession } from "@/hooks/useSession";
import { escapeControl } from "@/format/escapeControl";
import { bytes } from "@/format/number";
import { useApiMutation } from "@/hooks/useApiMutation";
import {
  checkpointFilesQuery,
  checkpointLists,
  checkpointUrl,
  deleteCheckpoint,
  type ListedCheckpoint,
} from "@/services/checkpoints";
import { experimentQuery } from "@/services/experiments";
import { Button } from "./base/Button";
import { Dialog } from "./base/Dialog";
import { Failure } from "./base/Failure";
import { Loading } from "./base/Loading";
import { useSay } from "./base/Toasts";
import buttonStyles from "./base/Button.module.css";
import dialogStyles from "./base/Dialog.module.css";
import styles from "./CheckpointDialog.module.css";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

const DISPLAY_LIMIT = 1_000;

interface Props {
  checkpoint: ListedCheckpoint;
  onClose: () => void;
}

/** Files of a checkpoint, with download and, for its owner, deletion after a confirmation. */
export function CheckpointDialog({ checkpoint, onClose }: Props) {
  const [deleting, setDeleting] = useState(false);
  const say = useSay();
  const { uuid, experimentId, state } = checkpoint;
  const { mutate: remove, isPending } = useApiMutation({
    mutationFn: () => deleteCheckpoint(uuid),
    onSuccess: (now) => {
      say({
        text: now === "STATE_DELETING" ? `A task is deleting checkpoint ${uuid}` : `Deleted checkpoint ${uuid}`,
      });
      onClose();
    },
    invalidates: [checkpointLists(), checkpointLists(experimentId), ["checkpoint", uuid]],
  });
  const why = useRefusal(checkpoint);
  const isThere = state === "STATE_COMPLETED" || state === "STATE_PARTIALLY_DELETED";
  const mayTry = isThere || state === "STATE_DELETE_FAILED";
  if (deleting) {
    return (
      <Dialog open onClose={() => setDeleting(false)} title="Delete this checkpoint?">
        <p>
          The {bytes(checkpoint.size)} of checkpoint <code>{uuid}</code> of trial {checkpoint.trialId} at step{" "}
          {checkpoint.steps} are deleted for good.
          {checkpoint.isBest && " It is the best checkpoint of its experiment."}
          {checkpoint.isLatest && " It is the latest of its trial: the trial cannot resume from it any more."}
        </p>
        <div className={dialogStyles.foot}>
          <Button onClick={() => setDeleting(false)} autoFocus>
            Cancel
          </Button>
          <Button kind="danger" busy={isPending} onClick={() => remove()}>
            Delete
          </Button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog open onClose={onClose} title={`Files of checkpoint ${uuid}`} wide>
      {checkpoint.deleteError && (
        <p role="note">It could not be deleted: {escapeControl(checkpoint.deleteError)}. Delete it again to retry.</p>
      )}
      <Files uuid={uuid} />
      <div className={dialogStyles.foot}>
        <Button kind="danger" why={mayTry ? why : "It has no files any more"} onClick={() => setDeleting(true)}>
          Delete…
        </Button>
        {isThere && (
          <a className={clsx(buttonStyles.button, buttonStyles.primary)} href={checkpointUrl(uuid)} download>
            Download
          </a>
        )}
      </div>
    </Dialog>
  );
}

/** Returns why this user may not delete the checkpoint, or undefined if they may. */
function useRefusal({ experimentId }: ListedCheckpoint): string | undefined {
  const { user } = useSession();
  const { data: experiment, error } = useQuery({ ...experimentQuery(experimentId), enabled: !user.admin });
  if (user.admin) return undefined;
  if (!experiment) return error ? "Its owner is not known" : "Loading…";
  return experiment.username === user.username ? undefined : `Only ${experiment.username} or an admin can delete it`;
}

function Files({ uuid }: { uuid: string }) {
  const { data: files, error, refetch } = useQuery(checkpointFilesQuery(uuid));
  if (error && !files) return <Failure error={error} retry={() => void refetch()} />;
  if (!files) return <Loading what="the files" />;
  if (files.length === 0) return <p className={typography.hint}>It has no files.</p>;
  return (
    <>
      <div className={styles.files} tabIndex={0} role="region" aria-label="Files">
        <table className={layout.table}>
          <thead>
            <tr>
              <th>File</th>
              <th className={layout.numberCell}>Size</th>
            </tr>
          </thead>
          <tbody>
            {files.slice(0, DISPLAY_LIMIT).map(({ path, size }) => (
              <tr key={path}>
                <td>
                  <code>{escapeControl(path)}</code>
                </td>
                <td className={layout.numberCell}>{bytes(size)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {files.length > DISPLAY_LIMIT && (
        <p className={typography.hint}>
          The first {DISPLAY_LIMIT} of {files.length} files.
        </p>
      )}
    </>
  );
}
