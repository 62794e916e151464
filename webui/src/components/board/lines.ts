import { groupBy } from "@/format/groupBy";
import type { Series, XAxis } from "@/services/series";
import { bandOf } from "../charts/bands";
import { type ChartLine, pointsOf } from "../charts/line";
import { levelsOf, type Stroke, strokeOf } from "../charts/palette";
import { smoothed } from "../charts/smoothing";

/** A run of a comparison. */
export interface Run {
  trialId: number;
  label: string;
  /** Runs of one group (with the same configuration except for the seed) may be drawn as a band. */
  group?: string;
}

interface Drawing {
  x: XAxis;
  smoothing: number;
  banded: boolean;
}

const STYLES: Record<string, number> = { training: 0, validation: 1 };

/** Returns the strokes of each run's lines in a chart of these runs; with bands, the strokes of the run's band. */
export function strokesOf(runs: readonly Run[], banded: boolean): (run: Run, style?: number) => Stroke {
  const firsts = new Map<string, number>();
  const nameOf = (run: Run) => (banded ? bundleOf(run) : String(run.trialId));
  for (const run of runs) if (!firsts.has(nameOf(run))) firsts.set(nameOf(run), run.trialId);
  const levels = levelsOf([...firsts.values()]);
  return (run, style) => {
    const id = firsts.get(nameOf(run)) ?? run.trialId;
    return strokeOf(id, style, levels.get(id));
  };
}

function bundleOf(run: Run): string {
  return run.group ?? run.label;
}

/** Returns the lines of the series. Colours distinguish runs, dashes distinguish groups of metrics. */
export function linesOf(all: readonly Series[], runs: readonly Run[], { x, smoothing, banded }: Drawing): ChartLine[] {
  const groups = [...new Set(all.map((series) => series.group))];
  if (banded) return bandLines(all, runs, x, smoothing, groups);
  const others = groups.filter((group) => STYLES[group] === undefined);
  const strokeFor = strokesOf(runs, false);
  const lines: ChartLine[] = [];
  for (const run of runs) {
    for (const series of all) {
      if (series.trialId !== run.trialId) continue;
      const points = pointsOf(series, x);
      if (points.x.length === 0) continue;
      const style = STYLES[series.group];
      const isOther = runs.length === 1 && style === undefined;
      const stroke = isOther ? strokeOf(run.trialId, 2, others.indexOf(series.group)) : strokeFor(run, style ?? 2);
      const name = groups.length > 1 ? `${run.label} ${series.group}` : run.label;
      lines.push({
        key: `${series.trialId}/${series.group}/${series.name}`,
        label: runs.length === 1 ? series.group : name,
        x: points.x,
        y: smoothed(points.y, smoothing),
        stroke,
        ...(smoothing > 0 ? { raw: points.y } : {}),
      });
    }
  }
  return lines;
}

function bandLines(
  all: readonly Series[],
  runs: readonly Run[],
  x: XAxis,
  smoothing: number,
  groups: readonly string[],
): ChartLine[] {
  const bundles = groupBy(runs, bundleOf);
  const strokeFor = strokesOf(runs, true);
  const lines: ChartLine[] = [];
  for (const [bundle, members] of bundles) {
    for (const group of groups) {
      const ids = new Set(members.map((run) => run.trialId));
      const points = all
        .filter((series) => series.group === group && ids.has(series.trialId))
        .map((series) => pointsOf(series, x));
      const band = bandOf(points);
      if (band.x.length === 0) continue;
      lines.push({
        key: `${bundle}/${group}`,
        label: `${bundle}${groups.length > 1 ? ` ${group}` : ""} (${points.length})`,
        x: band.x,
        y: smoothed(band.mean, smoothing),
        stroke: strokeFor(members[0]!, STYLES[group] ?? 2),
        band: { least: band.least, greatest: band.greatest },
      });
    }
  }
  return lines;
}
