const PINNED: ReadonlySet<string> = new Set(["id", "name"]);

/**
 * Returns the sticky offset of columns that stay visible while the others scroll: those that identify the experiment,
 * as long as they come first. In pixels from the left, of which `begin` are taken; undefined for all others. Pure.
 */
export function pinnedAt(columns: readonly { id: string; width: number }[], begin: number): (number | undefined)[] {
  const first = columns.findIndex(({ id }) => !PINNED.has(id));
  const count = first < 0 ? columns.length : first;
  let left = begin;
  return columns.map(({ width }, index) => {
    if (index >= count) return undefined;
    left += width;
    return left - width;
  });
}
