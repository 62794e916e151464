import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { messageOf } from "@/api/problem";
import { useSay } from "@/components/base/Toasts";
import {
  activateExperiment,
  archiveExperiment,
  cancelExperiment,
  deleteExperiment,
  killExperiment,
  pauseExperiment,
} from "@/services/experiments";

const VERBS = {
  pause: { run: pauseExperiment, said: "Asked to pause" },
  activate: { run: activateExperiment, said: "Activated" },
  cancel: { run: cancelExperiment, said: "Asked to stop" },
  kill: { run: killExperiment, said: "Killed" },
  archive: { run: (id: number) => archiveExperiment(id, true), said: "Archived" },
  unarchive: { run: (id: number) => archiveExperiment(id, false), said: "Brought back" },
  delete: { run: deleteExperiment, said: "Deleting" },
} as const;

export type Steering = keyof typeof VERBS;

/** Does one thing at a time to an experiment. What is shown afterwards is what the master says, never a guess. */
export function useSteering(id: number) {
  const queries = useQueryClient();
  const say = useSay();
  const [busy, setBusy] = useState<Steering | null>(null);
  const steer = useCallback(
    async (verb: Steering): Promise<void> => {
      setBusy(verb);
      try {
        await VERBS[verb].run(id);
        say({
          text: `${VERBS[verb].said} experiment ${id}`,
          ...(verb === "archive" ? { undo: { title: "Undo", run: () => void steer("unarchive") } } : {}),
        });
      } catch (error) {
        say({ text: messageOf(error), kind: "failed" });
      } finally {
        setBusy(null);
        await queries.invalidateQueries({ queryKey: ["experiment", String(id)] });
        await queries.invalidateQueries({ queryKey: ["experiments"] });
      }
    },
    [id, queries, say],
  );
  return { busy, steer };
}
