import { sessionEnded } from "@/api/sessionEnded";
import { Shell } from "./shell";

/**
 * The shells of this page, one for each task. They go on while other parts of the page are shown, and end when the user
 * signs out.
 */
class Shells {
  private readonly shells = new Map<string, Shell>();
  private readonly listeners = new Set<() => void>();

  constructor() {
    sessionEnded.listen(() => {
      for (const taskId of [...this.shells.keys()]) this.remove(taskId);
    });
    window.addEventListener("beforeunload", (event) => {
      // To leave the page would end the programs in it.
      if ([...this.shells.values()].some((shell) => shell.snapshot().phase !== "ended")) event.preventDefault();
    });
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  of(taskId: string): Shell | null {
    return this.shells.get(taskId) ?? null;
  }

  /** Opens a shell in place of an earlier one of the task. */
  open(taskId: string, rank: number, label: string): void {
    this.shells.get(taskId)?.dispose();
    this.shells.set(taskId, new Shell(taskId, rank, label));
    this.changed();
  }

  remove(taskId: string): void {
    this.shells.get(taskId)?.dispose();
    this.shells.delete(taskId);
    this.changed();
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }
}

export const shells = new Shells();
