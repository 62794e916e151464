export type XAxis = "batches" | "epochs" | "time";

/** One line of a plot. x and y have the same length; y may be NaN or infinite. */
export interface Series {
  trialId: number;
  group: string;
  name: string;
  batches: number[];
  /** Unix seconds. */
  times: number[];
  epochs: number[] | null;
  values: number[];
  /** Points before thinning. */
  count: number;
  /** Points of the series, whatever range was requested. */
  total: number;
}

/** Returns by trial the time of the newest point that all its series reach. It and later points are requested. */
export function timesOf(known: readonly Series[]): Record<string, number> {
  const times: Record<string, number> = {};
  for (const { trialId, times: own } of known) {
    const last = newest(own);
    if (last !== null) times[trialId] = Math.min(times[trialId] ?? Infinity, last);
  }
  return times;
}

/**
 * Returns the series with the new points, or null if they have to be fetched again: a restart has removed points, a
 * point is older than a known one, there are too many points to draw, or there is another series.
 */
export function extended(known: readonly Series[], tail: readonly Series[], x: XAxis, most: number): Series[] | null {
  if (known.length !== tail.length) return null;
  const found: Series[] = [];
  for (const [at, own] of known.entries()) {
    const longer = one(own, tail[at]!, x);
    if (!longer || longer.values.length > most) return null;
    found.push(longer);
  }
  return found;
}

function one(known: Series, tail: Series, x: XAxis): Series | null {
  if (known.trialId !== tail.trialId || known.group !== tail.group || known.name !== tail.name) return null;
  if (tail.count !== tail.values.length) return null;
  const last = newest(known.times);
  if (last !== null && !tail.times.includes(last)) return null;
  const fresh = tail.times.flatMap((time, place) => (last === null || time > last ? [place] : []));
  if (known.total + fresh.length !== tail.total) return null;
  if (fresh.length === 0) return known;
  const epochsOf = ({ epochs, values }: Series) => epochs ?? values.map(() => NaN);
  const added = x === "epochs" ? fresh.filter((place) => !Number.isNaN(epochsOf(tail)[place])) : fresh;
  const pick = (numbers: readonly number[]) => added.map((place) => numbers[place]!);
  const longer: Series = {
    ...known,
    batches: [...known.batches, ...pick(tail.batches)],
    times: [...known.times, ...pick(tail.times)],
    epochs: known.epochs || tail.epochs ? [...epochsOf(known), ...pick(epochsOf(tail))] : null,
    values: [...known.values, ...pick(tail.values)],
    count: known.count + added.length,
    total: tail.total,
  };
  return isOrdered(x === "batches" ? longer.batches : x === "time" ? longer.times : longer.epochs!) ? longer : null;
}

function newest(times: readonly number[]): number | null {
  return times.length === 0 ? null : times.reduce((latest, time) => Math.max(latest, time));
}

function isOrdered(numbers: readonly number[]): boolean {
  return numbers.every((number, place) => place === 0 || numbers[place - 1]! <= number);
}
