import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Button } from "@/components/base/Button";
import { EmptyState } from "@/components/base/EmptyState";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { useBoardState } from "@/components/board/boardState";
import { Panel } from "@/components/board/Panel";
import { panelsOf } from "@/components/board/panels";
import { isProfile } from "@/components/board/profile";
import { trialMetricNamesQuery } from "@/services/trials";
import type { TrialTabProps } from "./tabProps";
import layout from "@/styles/layout.module.css";

/** Metrics of the machine while the trial ran. */
export default function Profile({ trial }: TrialTabProps) {
  const { data, error } = useQuery(trialMetricNamesQuery(trial.experimentId, trial.id));
  const [state, change] = useBoardState();
  const runs = useMemo(() => [{ trialId: trial.id, label: `trial ${trial.id}` }], [trial.id]);
  const panels = useMemo(
    () =>
      panelsOf(
        (data?.metrics ?? []).filter(({ group }) => isProfile(group)),
        "",
      ),
    [data],
  );
  if (error && !data) return <Failure error={error} />;
  if (!data) return <Loading what="the profile" />;
  if (panels.length === 0) {
    return (
      <EmptyState
        title="No profiling data"
        command={`det experiment create config.yaml context/ --config profiling.enabled=true`}
      >
        With profiling enabled, the use of processors and memory is shown here.
      </EmptyState>
    );
  }
  return (
    <>
      {state.zoom && (
        <div>
          <Button onClick={() => change({ zoom: null })}>Reset zoom</Button>
        </div>
      )}
      <div className={layout.cards}>
        {panels.map((panel) => (
          <Panel
            key={panel.name}
            name={panel.name}
            metrics={panel.metrics}
            experimentId={trial.experimentId}
            runs={runs}
            state={{ ...state, x: "time", logX: false }}
            change={change}
            syncKey={`profile-${trial.id}`}
          />
        ))}
      </div>
    </>
  );
}
