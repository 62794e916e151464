import { groupBy } from "@/format/groupBy";
import type { Series, XAxis } from "@/services/series";
import { bandOf } from "../charts/bands";
import { type ChartLine, pointsOf } from "../charts/line";
import { strokeOf } from "../charts/palette";
import { smoothed } from "../charts/smoothing";

/** One run of a comparison. */
export interface Run {
  trialId: number;
  label: string;
  /** Runs of one group (of one configuration but for the seed) may be drawn as a band. */
  group?: string;
}

interface Drawing {
  x: XAxis;
  smoothing: number;
  banded: boolean;
}

const STYLES: Record<string, number> = { training: 0, validation: 1 };

/** Colours tell runs apart, dashes the groups of metrics; with one run, colours tell the groups apart. */
export function linesOf(all: readonly Series[], runs: readonly Run[], { x, smoothing, banded }: Drawing): ChartLine[] {
  const groups = [...new Set(all.map((series) => series.group))];
  if (banded) return bandLines(all, runs, x, smoothing, groups);
  const lines: ChartLine[] = [];
  runs.forEach((run, index) => {
    for (const series of all) {
      if (series.trialId !== run.trialId) continue;
      const points = pointsOf(series, x);
      if (points.x.length === 0) continue;
      const style = STYLES[series.group] ?? 2;
      const stroke =
        runs.length === 1
          ? strokeOf(style < 2 ? style : 2 + groups.indexOf(series.group), style)
          : strokeOf(index, style);
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
  });
  return lines;
}

function bandLines(
  all: readonly Series[],
  runs: readonly Run[],
  x: XAxis,
  smoothing: number,
  groups: readonly string[],
): ChartLine[] {
  const bundles = groupBy(runs, (run) => run.group ?? run.label);
  const lines: ChartLine[] = [];
  [...bundles].forEach(([bundle, members], index) => {
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
        stroke: strokeOf(index, STYLES[group] ?? 2),
        band: { least: band.least, greatest: band.greatest },
      });
    }
  });
  return lines;
}
