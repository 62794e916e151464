import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { bytes, figure } from "@/format/number";
import { checkpointsQuery } from "@/services/checkpoints";
import { CopyText } from "./base/CopyText";
import { EmptyState } from "./base/EmptyState";
import { Failure } from "./base/Failure";
import { Loading } from "./base/Loading";
import { OlderOnes } from "./base/OlderOnes";
import { StateBadge } from "./StateBadge";
import { TimeText } from "./TimeText";
import { escapeControl } from "@/format/escapeControl";

/** Checkpoints, newest first: of one experiment or of all. */
export function CheckpointTable({ experimentId }: { experimentId?: number }) {
  const list = useInfiniteQuery(checkpointsQuery(experimentId));
  const { data, error } = list;
  if (error) return <Failure error={error} />;
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
  return (
    <section aria-label="Checkpoints">
      <div className="scroll-x">
        <table className="plain-table">
          <thead>
            <tr>
              <th>Checkpoint</th>
              {experimentId === undefined && <th>Experiment</th>}
              <th>Trial</th>
              <th className="number">Step</th>
              <th>State</th>
              <th className="number">Metric</th>
              <th className="number">Size</th>
              <th className="number">Files</th>
              <th>Saved</th>
            </tr>
          </thead>
          <tbody>
            {all.map((each) => (
              <tr key={each.uuid}>
                <td>
                  <CopyText text={each.uuid} />
                  {each.isBest && <span className="tag">★ best</span>}{" "}
                  {each.isLatest && <span className="tag">latest</span>}
                </td>
                {experimentId === undefined && (
                  <td>
                    <Link to={`/experiments/${each.experimentId}`}>{escapeControl(each.experimentName)}</Link>
                  </td>
                )}
                <td>
                  <Link to={`/experiments/${each.experimentId}/trials/${each.trialId}`}>{each.trialId}</Link>
                </td>
                <td className="number">{each.steps}</td>
                <td>
                  <StateBadge state={each.state === "STATE_ACTIVE" ? "saving" : each.state} />
                </td>
                <td className="number">{figure(each.validation)}</td>
                <td className="number">{bytes(each.size)}</td>
                <td className="number">{each.files}</td>
                <td>
                  <TimeText at={each.time} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <OlderOnes list={list} />
    </section>
  );
}
