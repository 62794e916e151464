import uPlot from "uplot";
import { figure } from "@/format/number";
import type { XAxis } from "@/services/series";
import type { Aligned } from "./alignment";
import type { Hover } from "./HoverNote";
import type { ChartLine, ChartMark } from "./line";
import { sparsePath, sparseRange } from "./sparsePath";
import { spanOf } from "./xSpan";

interface Current {
  lines: readonly ChartLine[];
  marks: readonly ChartMark[];
  aligned: Aligned;
  /** Keys of hidden lines. */
  hidden: ReadonlySet<string>;
  /** Visible range of x, shared by all charts of a board. */
  zoom: readonly [number, number] | null;
  onZoom?: ((range: [number, number] | null) => void) | undefined;
}

interface Wanted {
  width: number;
  height: number;
  x: XAxis;
  logX: boolean;
  logY: boolean;
  syncKey: string | undefined;
  timeZone: string | undefined;
  current: () => Current;
  onHover: (hover: Hover | null) => void;
  /** Scale factor, for pictures. */
  factor?: number;
}

const MARK_SIGNS: Record<string, string> = { restart: "↻", pause: "❚❚", checkpoint: "◆" };

function style(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function options(wanted: Wanted): uPlot.Options {
  const { lines, aligned, hidden } = wanted.current();
  const factor = wanted.factor ?? 1;
  const ink = style("--ink-soft");
  const grid = style("--line");
  const axis = {
    stroke: ink,
    grid: { stroke: grid, width: factor },
    ticks: { stroke: grid, width: factor, size: 10 * factor },
    gap: 5 * factor,
    font: `${11 * factor}px system-ui, sans-serif`,
  };
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  const paths = sparsePath(() => wanted.current().aligned.filled);
  lines.forEach((line, index) => {
    const columns = aligned.columns[index]!;
    const { color, dash } = line.stroke;
    const show = !hidden.has(line.key);
    series.push({
      show,
      stroke: color,
      width: 1.75 * factor,
      spanGaps: true,
      paths,
      auto: false,
      points: { show: line.x.length < 40, size: 5 * factor },
      ...(dash ? { dash: dash.map((each) => each * factor) } : {}),
    });
    const faint = (alpha: string, width: number): uPlot.Series => ({
      show,
      stroke: `${color}${alpha}`,
      width: width * factor,
      spanGaps: true,
      points: { show: false },
    });
    if (columns.raw !== null) series.push(faint("55", 1));
    if (columns.least !== null) series.push(faint("66", 0.5));
    if (columns.greatest !== null) series.push(faint("66", 0.5));
    if (show && columns.least !== null && columns.greatest !== null)
      bands.push({ series: [columns.greatest, columns.least], fill: `${color}30` });
  });
  return {
    width: wanted.width,
    height: wanted.height,
    legend: { show: false },
    series,
    bands,
    scales: {
      x: {
        time: wanted.x === "time",
        distr: wanted.logX ? 3 : 1,
        range: (_: uPlot, least: number | null, greatest: number | null) =>
          rangeOf(wanted.current().zoom, least, greatest, wanted),
      },
      y: {
        distr: wanted.logY ? 3 : 1,
        range: (plot: uPlot, least: number | null, greatest: number | null) =>
          sparseRange(plot, least, greatest, wanted.current().aligned.filled, wanted.logY),
      },
    },
    ...(wanted.timeZone
      ? { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1000), wanted.timeZone!) }
      : {}),
    axes: [
      {
        ...axis,
        // Times have their day on a second line.
        size: (wanted.x === "time" ? 50 : 34) * factor,
        space: 50 * factor,
        ...(wanted.x === "time"
          ? {}
          : {
              values: (_: uPlot, ticks: (number | null)[]) => ticks.map((tick) => (tick === null ? "" : figure(tick))),
            }),
      },
      {
        ...axis,
        size: 62 * factor,
        space: 30 * factor,
        values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : figure(tick))),
      },
    ],
    cursor: {
      // The board sets the scale on all of its charts.
      drag: { x: true, y: false, setScale: false },
      focus: { prox: 24 },
      ...(wanted.syncKey
        ? {
            sync: {
              key: wanted.syncKey,
              scales: ["x", null],
              setSeries: false,
              // Only the chart under the pointer selects a range.
              filters: { pub: (type: string) => type === "mousemove" || type === "mouseleave" },
            },
          }
        : {}),
    },
    hooks: {
      draw: [(plot) => drawMarks(plot, wanted.current(), factor)],
      setCursor: [(plot) => wanted.onHover(hoverOf(plot))],
      setSelect: [(plot) => zoomed(plot, wanted.current())],
      ready: [(plot) => plot.over.addEventListener("dblclick", () => wanted.current().onZoom?.(null))],
    },
  };
}

/** Returns the zoomed range, else the range of all points. */
function rangeOf(
  zoom: readonly [number, number] | null,
  least: number | null,
  greatest: number | null,
  { x, logX }: Wanted,
): uPlot.Range.MinMax {
  if (zoom && !(logX && zoom[0] <= 0)) return [zoom[0], zoom[1]];
  if (least === null || greatest === null) return [least, greatest];
  return logX ? uPlot.rangeLog(least, greatest, 10, false) : spanOf(least, greatest, x);
}

function hoverOf(plot: uPlot): Hover | null {
  const { left, top, idx, event } = plot.cursor;
  // Other charts that share the pointer show only its line.
  if (!event || left === undefined || left < 0 || idx === null || idx === undefined) return null;
  const box = plot.over.getBoundingClientRect();
  return {
    index: idx,
    pointer: { x: box.left + left, y: box.top + (top ?? 0) },
    down: (value) => Math.abs(plot.valToPos(value, "y") - (top ?? 0)),
  };
}

function zoomed(plot: uPlot, current: Current): void {
  const isClick = plot.select.width < 4;
  const range: [number, number] = [
    plot.posToVal(plot.select.left, "x"),
    plot.posToVal(plot.select.left + plot.select.width, "x"),
  ];
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  if (!isClick) current.onZoom?.(range);
}

/** Shades a period without training between two pixels. Parts outside of the chart are clipped. */
function shade({ ctx, bbox }: uPlot, from: number, to: number): void {
  ctx.fillStyle = `${style("--waiting")}22`;
  ctx.fillRect(from, bbox.top, Math.max(0, to - from), bbox.height);
}

/** Draws events as vertical lines with a sign, and values that cannot be drawn as signs at the edge. */
function drawMarks(plot: uPlot, { marks, aligned, lines, hidden }: Current, factor: number): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio * factor;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.textAlign = "center";
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  for (const mark of marks) {
    const x = plot.valToPos(mark.x, "x", true);
    if (mark.until !== undefined)
      shade(plot, x, Number.isFinite(mark.until) ? plot.valToPos(mark.until, "x", true) : bbox.left + bbox.width);
    if (!Number.isFinite(x) || x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = mark.kind === "checkpoint" ? "#8a8a8a55" : style("--waiting");
    ctx.fillStyle = mark.kind === "checkpoint" ? "#8a8a8a" : style("--waiting");
    ctx.setLineDash(mark.kind === "pause" ? [] : [4 * ratio, 4 * ratio]);
    ctx.lineWidth = ratio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillText(
      MARK_SIGNS[mark.kind] ?? "|",
      x,
      bbox.top + (mark.kind === "checkpoint" ? bbox.height - 3 * ratio : 11 * ratio),
    );
  }
  for (const { line, x, value } of aligned.lost) {
    if (hidden.has(lines[line]?.key ?? "")) continue;
    const left = plot.valToPos(x, "x", true);
    if (!Number.isFinite(left)) continue;
    ctx.fillStyle = lines[line]?.stroke.color ?? "#888";
    const sign = Number.isNaN(value) ? "✕" : value > 0 ? "▲" : "▼";
    ctx.fillText(sign, left, value > 0 ? bbox.top + 24 * ratio : bbox.top + bbox.height - 4 * ratio);
  }
  ctx.restore();
}
