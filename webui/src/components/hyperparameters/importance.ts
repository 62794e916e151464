export interface Importance {
  name: string;
  /** Share of the total, 0 to 1. */
  share: number;
}

interface Split {
  feature: number;
  at: number;
  low: Tree;
  high: Tree;
}

type Tree = number | Split;

const TREES = 48;
const DEPTH = 6;
const LEAF = 2;

/** Minimum number of trials for a result. */
export const MIN_TRIALS = 8;

/** Returns a seeded random generator, so that the result does not change between renders. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
}

/**
 * Returns how much worse a forest of regression trees predicts the metric when one hyperparameter is shuffled, measured
 * on the trials that a tree was not trained on. `rows`: one per trial, with one number per hyperparameter.
 */
export function importanceOf(
  names: readonly string[],
  rows: readonly (readonly number[])[],
  metric: readonly number[],
): Importance[] {
  const usable = metric
    .map((_, index) => index)
    .filter((index) => Number.isFinite(metric[index]) && rows[index]!.every(Number.isFinite));
  if (usable.length < MIN_TRIALS || names.length === 0) return [];
  const random = generator(20_261_121);
  const loss = names.map(() => 0);
  for (let round = 0; round < TREES; round += 1) {
    const bag = usable.map(() => usable[Math.floor(random() * usable.length)]!);
    const inside = new Set(bag);
    const out = usable.filter((index) => !inside.has(index));
    if (out.length < 2) continue;
    const tree = grow(bag, rows, metric, names.length, DEPTH, random);
    const base = error(tree, out, (index) => rows[index]!, metric);
    names.forEach((_, feature) => {
      const shuffled = shuffle(out, random);
      const worse = error(
        tree,
        out,
        (_index, place) =>
          rows[out[place]!]!.map((value, each) => (each === feature ? rows[shuffled[place]!]![feature]! : value)),
        metric,
      );
      loss[feature]! += Math.max(0, worse - base);
    });
  }
  const total = loss.reduce((sum, value) => sum + value, 0);
  return names
    .map((name, feature) => ({ name, share: total > 0 ? loss[feature]! / total : 0 }))
    .sort((a, b) => b.share - a.share || a.name.localeCompare(b.name));
}

function grow(
  bag: readonly number[],
  rows: readonly (readonly number[])[],
  metric: readonly number[],
  features: number,
  depth: number,
  random: () => number,
): Tree {
  const mean = bag.reduce((sum, index) => sum + metric[index]!, 0) / bag.length;
  if (depth === 0 || bag.length < 2 * LEAF) return mean;
  let best: { feature: number; at: number; loss: number } | null = null;
  const tried = Math.max(1, Math.ceil(features * 0.7));
  for (const feature of shuffle([...Array(features).keys()], random).slice(0, tried)) {
    const found = cut(bag, rows, metric, feature);
    if (found && (!best || found.loss < best.loss)) best = { feature, ...found };
  }
  if (!best) return mean;
  const { feature, at } = best;
  const low = bag.filter((index) => rows[index]![feature]! <= at);
  const high = bag.filter((index) => rows[index]![feature]! > at);
  return {
    feature,
    at,
    low: grow(low, rows, metric, features, depth - 1, random),
    high: grow(high, rows, metric, features, depth - 1, random),
  };
}

/** Returns the threshold at which a feature splits the bag best, by least squares on both sides. */
function cut(
  bag: readonly number[],
  rows: readonly (readonly number[])[],
  metric: readonly number[],
  feature: number,
): { at: number; loss: number } | null {
  const sorted = [...bag].sort((a, b) => rows[a]![feature]! - rows[b]![feature]!);
  const total = sorted.reduce((sum, index) => sum + metric[index]!, 0);
  let left = 0;
  let best: { at: number; loss: number } | null = null;
  for (let count = 1; count < sorted.length; count += 1) {
    left += metric[sorted[count - 1]!]!;
    const here = rows[sorted[count - 1]!]![feature]!;
    const next = rows[sorted[count]!]![feature]!;
    if (here === next || count < LEAF || sorted.length - count < LEAF) continue;
    // The sum of squares is the same for every cut, so only the part that the means explain is compared.
    const loss = -(left ** 2 / count + (total - left) ** 2 / (sorted.length - count));
    if (!best || loss < best.loss) best = { at: (here + next) / 2, loss };
  }
  return best;
}

function error(
  tree: Tree,
  out: readonly number[],
  row: (index: number, place: number) => readonly number[],
  metric: readonly number[],
): number {
  return (
    out.reduce((sum, index, place) => sum + (predict(tree, row(index, place)) - metric[index]!) ** 2, 0) / out.length
  );
}

function predict(tree: Tree, row: readonly number[]): number {
  let node = tree;
  while (typeof node !== "number") node = row[node.feature]! <= node.at ? node.low : node.high;
  return node;
}

function shuffle<T>(values: readonly T[], random: () => number): T[] {
  const shuffled = [...values];
  for (let at = shuffled.length - 1; at > 0; at -= 1) {
    const other = Math.floor(random() * (at + 1));
    [shuffled[at], shuffled[other]] = [shuffled[other]!, shuffled[at]!];
  }
  return shuffled;
}
