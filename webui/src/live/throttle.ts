/** Runs `work` for a name at once, and once more after `every` milliseconds if it was called again meanwhile. */
export class Throttle {
  private readonly last = new Map<string, number>();
  private readonly pending = new Map<string, ReturnType<typeof setTimeout>>();

  constructor(private readonly now: () => number = () => Date.now()) {}

  run(name: string, every: number, work: () => void): void {
    if (this.pending.has(name)) return;
    const due = (this.last.get(name) ?? -Infinity) + every - this.now();
    if (due <= 0) {
      this.last.set(name, this.now());
      work();
      return;
    }
    this.pending.set(
      name,
      setTimeout(() => {
        this.pending.delete(name);
        this.last.set(name, this.now());
        work();
      }, due),
    );
  }

  stop(): void {
    for (const timer of this.pending.values()) clearTimeout(timer);
    this.pending.clear();
  }
}
