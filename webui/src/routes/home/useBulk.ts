import { isOutage, messageOf } from "@/api/problem";
import { useSay } from "@/components/base/Toasts";
import { useApiMutation } from "@/hooks/useApiMutation";
import { bulk, bulkLabel, type BulkResult, type BulkVerb } from "@/services/columns";

const DONE: Record<BulkVerb, string> = {
  activate: "Activated",
  pause: "Pausing",
  cancel: "Stopping",
  kill: "Killed",
  archive: "Archived",
  unarchive: "Unarchived",
  delete: "Deleting",
};

interface Change {
  verb: BulkVerb;
  ids: readonly number[];
  /** Called with the ids of the changed experiments. */
  onDone?: ((ids: number[]) => void) | undefined;
}

interface LabelChange {
  ids: readonly number[];
  add: readonly string[];
  remove: readonly string[];
}

/**
 * Changes the experiments with these ids, shows which were changed and which were refused, and offers to undo it if
 * possible.
 */
export function useBulk() {
  const say = useSay();
  const tell = (what: string, results: BulkResult[], undo?: (ids: number[]) => void) => {
    const failed = results.filter((result) => result.error);
    const done = results.filter((result) => !result.error).map((result) => result.id);
    if (done.length > 0)
      say({ text: `${what} ${named(done)}`, ...(undo ? { undo: { title: "Undo", run: () => undo(done) } } : {}) });
    for (const { error, id } of failed.slice(0, 3)) say({ text: refusalOf(id, error), kind: "failed" });
    if (failed.length > 3) say({ text: `${failed.length - 3} more failed`, kind: "failed" });
    return done;
  };
  const options = {
    onError: (error: Error) => {
      // A request whose answer is lost may have been carried out.
      const what = isOutage(error) ? "It is not known what was done" : "Nothing was done";
      say({ text: `${what}: ${messageOf(error)}`, kind: "failed" });
    },
    invalidates: [["experiments"]],
  };
  const { mutate } = useApiMutation<BulkResult[], Change>({
    ...options,
    mutationFn: ({ verb, ids }) => bulk(verb, ids, ids.length),
    onSuccess: (results, { verb, onDone }) => {
      const unarchive = (ids: number[]) => mutate({ verb: "unarchive", ids });
      const done = tell(DONE[verb], results, verb === "archive" ? unarchive : undefined);
      onDone?.(done);
    },
  });
  const { mutate: label } = useApiMutation<BulkResult[], LabelChange>({
    ...options,
    mutationFn: ({ ids, add, remove }) => bulkLabel(ids, ids.length, add, remove),
    onSuccess: (results) => void tell("Labeled", results),
  });
  const act = (verb: BulkVerb, ids: readonly number[], onDone?: Change["onDone"]) => mutate({ verb, ids, onDone });
  return { act, label };
}

/** Returns the master's words, which usually name the experiment themselves. */
function refusalOf(id: number, error: string): string {
  return error.startsWith(`experiment ${id} `) ? `E${error.slice(1)}` : `Experiment ${id}: ${error}`;
}

function named(ids: readonly number[]): string {
  return ids.length === 1 ? `experiment ${ids[0]}` : `${ids.length} experiments`;
}
