import { api, got } from "@/api/client";
import type { components } from "@/api/schema";

export type SeriesBody = components["schemas"]["SeriesBody"];
type WireSeries = components["schemas"]["Series"];
type Metric = SeriesBody["metrics"][number];

interface Waiting {
  body: SeriesBody;
  metrics: readonly Metric[];
  resolve: (series: WireSeries[]) => void;
  reject: (error: unknown) => void;
}

const MAX_METRICS = 50;
/**
 * Maximum number of points in one answer. Panels of few curves are combined. A panel with more does not wait for
 * another.
 */
const MAX_POINTS = 20_000;

let waiting: Waiting[] = [];

/** Fetches series. Panels that render or refetch at the same moment send one request for their metrics. */
export function fetchSeries(body: SeriesBody): Promise<WireSeries[]> {
  return new Promise((resolve, reject) => {
    const asked = { body, metrics: body.metrics, resolve, reject };
    if (pointsOf(body, body.metrics.length) >= MAX_POINTS) return void answer([asked]);
    if (waiting.length === 0) setTimeout(ask, 0);
    waiting.push(asked);
  });
}

function ask(): void {
  const all = waiting;
  waiting = [];
  const alike = new Map<string, Waiting[]>();
  for (const each of all) {
    const question = JSON.stringify({ ...each.body, metrics: null });
    alike.set(question, [...(alike.get(question) ?? []), each]);
  }
  for (const members of alike.values()) for (const bundle of bundles(members)) void answer(bundle);
}

function bundles(members: readonly Waiting[]): Waiting[][] {
  const found: Waiting[][] = [];
  let metrics = Infinity;
  for (const member of members) {
    metrics += member.metrics.length;
    if (metrics > MAX_METRICS || pointsOf(member.body, metrics) > MAX_POINTS) {
      found.push([]);
      metrics = member.metrics.length;
    }
    found.at(-1)!.push(member);
  }
  return found;
}

function pointsOf({ trialIds, maxPoints }: SeriesBody, metrics: number): number {
  return trialIds.length * maxPoints * metrics;
}

async function answer(bundle: readonly Waiting[]): Promise<void> {
  try {
    const metrics = bundle.flatMap((each) => each.metrics);
    const { series } = await got(api.POST("/detent/series", { body: { ...bundle[0]!.body, metrics } }));
    for (const each of bundle)
      each.resolve(
        series.filter((one) => each.metrics.some(({ group, name }) => group === one.group && name === one.name)),
      );
  } catch (error) {
    for (const each of bundle) each.reject(error);
  }
}
