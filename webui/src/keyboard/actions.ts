import { createContext, useContext, useLayoutEffect, useRef } from "react";

/** An action that is available now: by its keys, in the palette and in the help. */
export interface Action {
  id: string;
  title: string;
  /** Keys as typed: `p`, `g e`, `Shift+X`, `/`, `Mod+K` (Ctrl or ⌘). */
  keys?: string | undefined;
  group: string;
  /** Reason why the action is disabled. The action stays listed. */
  disabled?: string | undefined;
  /** Available only by its keys: `j` and `k` are not listed in the palette. */
  hidden?: boolean | undefined;
  run: () => void;
}

type Listener = () => void;

/** All actions of the displayed components. The newest registered one wins a key. */
export class ActionRegistry {
  private readonly sets = new Map<symbol, readonly Action[]>();
  private readonly listeners = new Set<Listener>();
  private flat: readonly Action[] = [];

  set(owner: symbol, actions: readonly Action[]): void {
    this.sets.delete(owner);
    this.sets.set(owner, actions);
    this.changed();
  }

  remove(owner: symbol): void {
    this.sets.delete(owner);
    this.changed();
  }

  all = (): readonly Action[] => this.flat;

  forKeys(keys: string): Action | undefined {
    return this.flat.findLast((action) => action.keys === keys);
  }

  isPrefix(keys: string): boolean {
    return this.flat.some((action) => action.keys?.startsWith(`${keys} `));
  }

  subscribe = (listener: Listener): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private changed(): void {
    this.flat = [...this.sets.values()].flat();
    for (const listener of this.listeners) listener();
  }
}

export const Actions = createContext<ActionRegistry>(new ActionRegistry());

/**
 * Offers these actions while the component is mounted, from its first render on: a key must not reach an earlier
 * component. Pass them at each render; the newest closure runs.
 */
export function useActions(actions: readonly Action[]): void {
  const registry = useContext(Actions);
  const owner = useRef(Symbol("actions")).current;
  const newest = useRef(actions);
  useLayoutEffect(() => {
    newest.current = actions;
  });
  const shape = JSON.stringify(actions.map((a) => [a.id, a.title, a.keys, a.group, a.disabled, a.hidden]));
  useLayoutEffect(() => {
    registry.set(
      owner,
      newest.current.map((action) => ({
        ...action,
        run: () => newest.current.find((each) => each.id === action.id)?.run(),
      })),
    );
  }, [registry, owner, shape]);
  useLayoutEffect(() => () => registry.remove(owner), [registry, owner]);
}
