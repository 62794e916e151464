import { useCallback, useState } from "react";

/** The selected experiments: always explicit ids, never "all". */
export interface Selection {
  ids: ReadonlySet<number>;
  has: (id: number) => boolean;
  toggle: (id: number) => void;
  set: (ids: Iterable<number>) => void;
  /** Adds these. */
  add: (ids: readonly number[]) => void;
  /** Removes these. Others that were selected meanwhile stay. */
  drop: (ids: readonly number[]) => void;
  clear: () => void;
}

export function useSelection(): Selection {
  const [ids, setIds] = useState<ReadonlySet<number>>(new Set());
  const toggle = useCallback((id: number) => {
    setIds((now) => {
      const next = new Set(now);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  }, []);
  const set = useCallback((next: Iterable<number>) => setIds(new Set(next)), []);
  const add = useCallback((more: readonly number[]) => setIds((now) => new Set([...now, ...more])), []);
  const drop = useCallback(
    (gone: readonly number[]) => setIds((now) => new Set([...now].filter((id) => !gone.includes(id)))),
    [],
  );
  const clear = useCallback(() => setIds(new Set()), []);
  return { ids, has: (id) => ids.has(id), toggle, set, add, drop, clear };
}
