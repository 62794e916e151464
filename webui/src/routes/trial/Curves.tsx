import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { NO_MARKS } from "@/components/board/marks";
import { MetricBoard } from "@/components/board/MetricBoard";
import { ExactTime } from "@/components/TimeText";
import { marksQuery, type TrialMark, trialMetricNamesQuery } from "@/services/trials";
import type { TrialTabProps } from "./tabProps";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

/** The trial's curves, with marks at its events. */
export default function Curves({ trial }: TrialTabProps) {
  const names = useQuery(trialMetricNamesQuery(trial.experimentId, trial.id));
  const { data: marks = NO_MARKS } = useQuery(marksQuery(trial.experimentId, trial.id));
  const runs = useMemo(() => [{ trialId: trial.id, label: `trial ${trial.id}` }], [trial.id]);
  if (names.error && !names.data) return <Failure error={names.error} />;
  if (!names.data) return <Loading what="the metrics" />;
  return (
    <>
      <MetricBoard
        experimentId={trial.experimentId}
        runs={runs}
        names={names.data.metrics}
        searcherMetric={names.data.searcherMetric}
        marks={marks}
      />
      {marks.length > 0 && (
        <details className={layout.card}>
          <summary>
            Marks: {counted(marks, "pause")}, {counted(marks, "restart")}, {counted(marks, "checkpoint")}
          </summary>
          <ol>
            {marks.map((mark, index) => (
              <li key={index} data-mark={mark.kind}>
                <span className={typography.soft}>
                  <ExactTime at={mark.time} />
                </span>{" "}
                step {mark.steps}: {mark.text}
              </li>
            ))}
          </ol>
        </details>
      )}
    </>
  );
}

/** "1 pause", "2 pauses". */
function counted(marks: readonly TrialMark[], kind: TrialMark["kind"]): string {
  const count = marks.filter((mark) => mark.kind === kind).length;
  return `${count} ${kind}${count === 1 ? "" : "s"}`;
}
