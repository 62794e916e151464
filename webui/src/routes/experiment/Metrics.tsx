import { failureOf } from "@/api/problem";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { searcherOf } from "@/components/board/direction";
import { MetricBoard } from "@/components/board/MetricBoard";
import { trialsQuery } from "@/services/experiments";
import { experimentMetricNamesQuery, marksQuery } from "@/services/trials";
import { bestTrials } from "./overview/bestTrials";
import type { TabProps } from "./tabProps";
import typography from "@/styles/typography.module.css";

const DISPLAY_LIMIT = 50;

/** The curves of all trials in common charts; of many trials, those of the best ones. */
export default function Metrics({ experiment }: TabProps) {
  const names = useQuery(experimentMetricNamesQuery(experiment.id));
  const trials = useQuery(trialsQuery(experiment.id));
  const runs = useMemo(
    () => bestTrials(trials.data ?? [], searcherOf(experiment), DISPLAY_LIMIT),
    [trials.data, experiment],
  );
  const only = runs.length === 1 ? runs[0]! : null;
  const { data: marks } = useQuery({ ...marksQuery(experiment.id, only?.trialId ?? 0), enabled: only !== null });
  const failure = failureOf(names, trials);
  if (failure !== null) return <Failure error={failure} />;
  if (!names.data || !trials.data) return <Loading what="the metrics" />;
  return (
    <>
      {trials.data.length > DISPLAY_LIMIT && (
        <p className={typography.hint}>
          The best {DISPLAY_LIMIT} of {trials.data.length} trials.
        </p>
      )}
      <MetricBoard
        experimentId={experiment.id}
        runs={runs}
        names={names.data.metrics}
        searcherMetric={names.data.searcherMetric}
        {...(marks ? { marks } : {})}
      />
    </>
  );
}
