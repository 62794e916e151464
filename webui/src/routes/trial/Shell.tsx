import { useQuery } from "@tanstack/react-query";
import { useState, useSyncExternalStore } from "react";
import { Button } from "@/components/base/Button";
import { shells } from "@/components/terminal/shells";
import { TerminalView } from "@/components/terminal/TerminalView";
import { escapeControl } from "@/format/escapeControl";
import { hasEnded } from "@/format/states";
import { type Attempt, attemptsQuery } from "@/services/trials";
import type { TrialTabProps } from "./tabProps";
import layout from "@/styles/layout.module.css";

/** A shell beside the trial, in the container of a rank. */
export default function Shell({ trial }: TrialTabProps) {
  const { data: attempts = [] } = useQuery(attemptsQuery(trial.experimentId, trial.id));
  const [chosen, setRank] = useState(0);
  const shell = useSyncExternalStore(shells.subscribe, () => shells.of(trial.taskId));
  const places = placesOf(attempts.at(-1));
  const rank = places.some((place) => place.rank === chosen) ? chosen : 0;
  const open = () => shells.open(trial.taskId, rank, `Shell of trial ${trial.id}`);
  const isOver = useSyncExternalStore(shell?.subscribe ?? never, () => shell?.snapshot().phase === "ended");
  return (
    <div className={layout.field}>
      {places.length > 1 && (shell === null || isOver) && (
        <label className={layout.row}>
          Container
          <select value={rank} onChange={(event) => setRank(Number(event.target.value))}>
            {places.map((place) => (
              <option key={place.rank} value={place.rank}>
                {escapeControl(place.title)}
              </option>
            ))}
          </select>
        </label>
      )}
      {shell ? (
        <TerminalView shell={shell} inside="trial" isTaskOver={hasEnded(trial.state)} openAgain={open} />
      ) : (
        <section className={layout.card} aria-label="Shell">
          <p>
            A shell runs beside the trial, on its machine and in its container, with its environment, user and limits.
            It ends with the trial.
          </p>
          <div className={layout.row}>
            <Button kind="primary" onClick={open}>
              Open a shell
            </Button>
          </div>
        </section>
      )}
    </div>
  );
}

const never = () => () => undefined;

interface Place {
  /** The first rank in the container. */
  rank: number;
  title: string;
}

/** Returns the containers of an attempt with their ranks: one for each slot, in the order of the containers. */
function placesOf(attempt: Attempt | undefined): Place[] {
  let next = 0;
  return [...(attempt?.containers ?? [])]
    .sort((one, other) => one.rank - other.rank)
    .map(({ slots, agentId }) => {
      const rank = next;
      next += Math.max(1, slots.length);
      return { rank, title: `${next - rank > 1 ? `ranks ${rank} to ${next - 1}` : `rank ${rank}`} on ${agentId}` };
    });
}
