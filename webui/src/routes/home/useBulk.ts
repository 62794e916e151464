import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { messageOf } from "@/api/problem";
import { useSay } from "@/components/base/Toasts";
import { bulk, bulkLabel, type BulkResult, type BulkVerb } from "@/services/columns";

const DONE: Record<BulkVerb, string> = {
  activate: "Activated",
  pause: "Asked to pause",
  cancel: "Asked to stop",
  kill: "Killed",
  archive: "Archived",
  unarchive: "Brought back",
  delete: "Deleting",
};

/** Does something to the experiments with these ids, says what came of it, and offers to take it back where it can be. Answers the ids to which it was done. */
export function useBulk() {
  const queries = useQueryClient();
  const say = useSay();
  const tell = useCallback(
    (what: string, results: BulkResult[], undo?: (ids: number[]) => void) => {
      const failed = results.filter((result) => result.error);
      const done = results.filter((result) => !result.error).map((result) => result.id);
      if (done.length > 0)
        say({ text: `${what} ${named(done)}`, ...(undo ? { undo: { title: "Undo", run: () => undo(done) } } : {}) });
      for (const { error, id } of failed.slice(0, 3)) say({ text: `Experiment ${id}: ${error}`, kind: "failed" });
      if (failed.length > 3) say({ text: `${failed.length - 3} more were refused`, kind: "failed" });
      return done;
    },
    [say],
  );
  const refresh = useCallback(() => queries.invalidateQueries({ queryKey: ["experiments"] }), [queries]);
  const act = useCallback(
    async (verb: BulkVerb, ids: readonly number[]): Promise<number[]> => {
      let done: number[] = [];
      try {
        const results = await bulk(verb, ids, ids.length);
        done = tell(
          DONE[verb],
          results,
          verb === "archive" ? (archived) => void act("unarchive", archived) : undefined,
        );
      } catch (error) {
        say({ text: `Nothing was done: ${messageOf(error)}`, kind: "failed" });
      }
      await refresh();
      return done;
    },
    [tell, say, refresh],
  );
  const label = useCallback(
    async (ids: readonly number[], add: readonly string[], remove: readonly string[]) => {
      try {
        tell("Labelled", await bulkLabel(ids, ids.length, add, remove));
      } catch (error) {
        say({ text: `Nothing was done: ${messageOf(error)}`, kind: "failed" });
      }
      await refresh();
    },
    [tell, say, refresh],
  );
  return { act, label };
}

function named(ids: readonly number[]): string {
  return ids.length === 1 ? `experiment ${ids[0]}` : `${ids.length} experiments`;
}
