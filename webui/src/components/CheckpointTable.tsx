import { clsx } from "clsx";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";
import { bytes, figure } from "@/format/number";
import { checkpointsQuery, type ListedCheckpoint } from "@/services/checkpoints";
import { CheckpointDialog } from "./CheckpointDialog";
import { CopyText } from "./base/CopyText";
import { EmptyState } from "./base/EmptyState";
import { Failure } from "./base/Failure";
import { Loading } from "./base/Loading";
import { OlderOnes } from "./base/OlderOnes";
import { StateBadge } from "./StateBadge";
import { TimeText } from "./TimeText";
import { escapeControl } from "@/format/escapeControl";
import { Icon } from "@/components/base/Icon";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

/** Checkpoints of one experiment or of all, newest first. Deleted ones are folded below the existing ones. */
export function CheckpointTable({ experimentId }: { experimentId?: number }) {
  const list = useInfiniteQuery(checkpointsQuery(experimentId));
  const { data, error } = list;
  const [opened, setOpened] = useState<ListedCheckpoint | null>(null);
  if (error && !data) return <Failure error={error} retry={() => void list.refetch()} />;
  if (!data) return <Loading what="the checkpoints" />;
  const all = data.pages.flatMap((page) => page.checkpoints);
  if (all.length === 0) {
    return (
      <EmptyState
        title="No checkpoint yet"
        command={experimentId ? `det experiment pause ${experimentId}` : "det experiment pause 1"}
      >
        A trial saves one when its configuration says so, when it is paused, and at its end.
      </EmptyState>
    );
  }
  const isDeleted = ({ state }: ListedCheckpoint) => state === "STATE_DELETED";
  const existing = all.filter((each) => !isDeleted(each));
  const deleted = all.filter(isDeleted);
  const shared = { experimentId, open: setOpened };
  return (
    <section aria-label="Checkpoints">
      {existing.length > 0 && <Table checkpoints={existing} {...shared} />}
      {deleted.length > 0 && (
        <details open={existing.length === 0 || undefined}>
          <summary>{deleted.length} deleted</summary>
          <Table checkpoints={deleted} {...shared} />
        </details>
      )}
      <OlderOnes list={list} />
      {opened && <CheckpointDialog checkpoint={opened} onClose={() => setOpened(null)} />}
    </section>
  );
}

interface TableProps {
  checkpoints: readonly ListedCheckpoint[];
  /** Undefined for the checkpoints of all experiments. */
  experimentId: number | undefined;
  open: (checkpoint: ListedCheckpoint) => void;
}

function Table({ checkpoints, experimentId, open }: TableProps) {
  return (
    <div className={layout.scrollX}>
      <table className={clsx(layout.table, layout.cardTable)}>
        <thead>
          <tr>
            <th>Checkpoint</th>
            {experimentId === undefined && <th>Experiment</th>}
            <th>Trial</th>
            <th className={layout.numberCell}>Step</th>
            <th>State</th>
            <th className={layout.numberCell}>Metric</th>
            <th className={layout.numberCell}>Size</th>
            <th className={layout.numberCell}>Files</th>
            <th>Saved</th>
          </tr>
        </thead>
        <tbody>
          {checkpoints.map((each) => (
            <tr key={each.uuid}>
              <td data-label="Checkpoint">
                <CopyText text={each.uuid} />
                {each.isBest && (
                  <span className={typography.tag}>
                    <Icon name="star" /> best
                  </span>
                )}{" "}
                {each.isLatest && <span className={typography.tag}>latest</span>}
              </td>
              {experimentId === undefined && (
                <td data-label="Experiment">
                  <Link to={`/experiments/${each.experimentId}`}>{escapeControl(each.experimentName)}</Link>
                </td>
              )}
              <td data-label="Trial">
                <Link to={`/experiments/${each.experimentId}/trials/${each.trialId}`}>{each.trialId}</Link>
              </td>
              <td data-label="Step" className={layout.numberCell}>
                {each.steps}
              </td>
              <td data-label="State">
                <StateBadge state={each.state === "STATE_ACTIVE" ? "saving" : each.state} />
              </td>
              <td data-label="Metric" className={layout.numberCell}>
                {figure(each.validation)}
              </td>
              <td data-label="Size" className={layout.numberCell}>
                {bytes(each.size)}
              </td>
              <td data-label="Files" className={layout.numberCell}>
                <button
                  type="button"
                  className={layout.linkButton}
                  aria-label={`${filesOf(each)} of checkpoint ${each.uuid}`}
                  aria-haspopup="dialog"
                  onClick={() => open(each)}
                >
                  {filesOf(each)}
                </button>
              </td>
              <td data-label="Saved">
                <TimeText at={each.time} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function filesOf({ files }: ListedCheckpoint): string {
  return files === 1 ? "1 file" : `${files} files`;
}
