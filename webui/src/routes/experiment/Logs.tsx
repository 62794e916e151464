import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { EmptyState } from "@/components/base/EmptyState";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { TrialLog } from "@/components/logs/TrialLog";
import { stateLook } from "@/format/states";
import { trialsQuery } from "@/services/experiments";
import type { TabProps } from "./tabProps";
import typography from "@/styles/typography.module.css";

/** The log of one trial: the first that failed, else the best, else the newest, until another is chosen. */
export default function Logs({ experiment }: TabProps) {
  const { data: trials, error } = useQuery(trialsQuery(experiment.id));
  const [chosen, setChosen] = useState<number | null>(null);
  if (error && !trials) return <Failure error={error} />;
  if (!trials) return <Loading what="the trials" />;
  const trial =
    trials.find((each) => each.id === chosen) ??
    trials.find((each) => each.state === "STATE_ERROR") ??
    trials.find((each) => each.id === experiment.bestTrialId) ??
    trials.at(-1);
  if (!trial) return <EmptyState title="No trial yet" command={`det experiment activate ${experiment.id}`} />;
  return (
    <>
      {trials.length > 1 && (
        <label>
          <span className={typography.soft}>Trial</span>
          <select value={trial.id} onChange={(event) => setChosen(Number(event.target.value))}>
            {trials.map((each) => (
              <option key={each.id} value={each.id}>
                {each.id} ({stateLook(each.state).word})
              </option>
            ))}
          </select>
        </label>
      )}
      <TrialLog trial={trial} />
    </>
  );
}
