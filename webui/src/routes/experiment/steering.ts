import { useSay } from "@/components/base/Toasts";
import { useApiMutation } from "@/hooks/useApiMutation";
import {
  activateExperiment,
  archiveExperiment,
  cancelExperiment,
  continueExperiment,
  deleteExperiment,
  killExperiment,
  pauseExperiment,
} from "@/services/experiments";

const VERBS = {
  pause: { run: pauseExperiment, said: "Pausing" },
  activate: { run: activateExperiment, said: "Activated" },
  cancel: { run: cancelExperiment, said: "Stopping" },
  kill: { run: killExperiment, said: "Killed" },
  archive: { run: (id: number) => archiveExperiment(id, true), said: "Archived" },
  unarchive: { run: (id: number) => archiveExperiment(id, false), said: "Unarchived" },
  continue: { run: continueExperiment, said: "Continuing" },
  delete: { run: deleteExperiment, said: "Deleting" },
} as const;

export type Steering = keyof typeof VERBS;

/** Runs one action at a time on an experiment. The displayed state afterwards is the master's, never a guess. */
export function useSteering(id: number, onDeleted?: () => void) {
  const say = useSay();
  const { mutate, isPending, variables } = useApiMutation({
    mutationFn: (verb: Steering) => VERBS[verb].run(id),
    onSuccess: (_, verb) => {
      say({
        text: `${VERBS[verb].said} experiment ${id}`,
        ...(verb === "archive" ? { undo: { title: "Undo", run: () => mutate("unarchive") } } : {}),
      });
      if (verb === "delete") onDeleted?.();
    },
    invalidates: [["experiment", String(id)], ["experiments"]],
  });
  return { busy: isPending ? variables : null, steer: mutate };
}
