import uPlot from "uplot";
import { figure } from "@/format/number";
import type { XAxis } from "@/services/series";
import type { Aligned } from "./alignment";
import type { Hover } from "./HoverNote";
import type { ChartLine, ChartMark } from "./line";
import { spanOf } from "./xSpan";

interface Current {
  lines: readonly ChartLine[];
  marks: readonly ChartMark[];
  aligned: Aligned;
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
}

const MARK_SIGNS: Record<string, string> = { restart: "↻", pause: "❚❚", checkpoint: "◆" };

function style(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function options(wanted: Wanted): uPlot.Options {
  const { lines, aligned } = wanted.current();
  const ink = style("--ink-soft");
  const grid = style("--line");
  const axis = {
    stroke: ink,
    grid: { stroke: grid, width: 1 },
    ticks: { stroke: grid, width: 1 },
    font: "11px system-ui, sans-serif",
  };
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  lines.forEach((line, index) => {
    const columns = aligned.columns[index]!;
    const { color, dash } = line.stroke;
    series.push({
      stroke: color,
      width: 1.75,
      spanGaps: true,
      points: { show: line.x.length < 40, size: 5 },
      ...(dash ? { dash } : {}),
    });
    if (columns.raw !== null) series.push({ stroke: `${color}55`, width: 1, spanGaps: true, points: { show: false } });
    if (columns.least !== null)
      series.push({ stroke: `${color}66`, width: 0.5, spanGaps: true, points: { show: false } });
    if (columns.greatest !== null)
      series.push({ stroke: `${color}66`, width: 0.5, spanGaps: true, points: { show: false } });
    if (columns.least !== null && columns.greatest !== null)
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
        ...(wanted.logX
          ? {}
          : { range: (_: uPlot, least: number, greatest: number) => spanOf(least, greatest, wanted.x) }),
      },
      y: { distr: wanted.logY ? 3 : 1 },
    },
    ...(wanted.timeZone
      ? { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1000), wanted.timeZone!) }
      : {}),
    axes: [
      {
        ...axis,
        ...(wanted.x === "time"
          ? {}
          : {
              values: (_: uPlot, ticks: (number | null)[]) => ticks.map((tick) => (tick === null ? "" : figure(tick))),
            }),
      },
      { ...axis, size: 62, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : figure(tick))) },
    ],
    cursor: {
      drag: { x: true, y: true, uni: 40 },
      focus: { prox: 24 },
      ...(wanted.syncKey ? { sync: { key: wanted.syncKey, scales: ["x", null] } } : {}),
    },
    hooks: {
      draw: [(plot) => drawMarks(plot, wanted.current())],
      setCursor: [(plot) => wanted.onHover(hoverOf(plot))],
      setSelect: [(plot) => zoomed(plot, wanted.current())],
      ready: [(plot) => plot.over.addEventListener("dblclick", () => wanted.current().onZoom?.(null))],
    },
  };
}

function hoverOf(plot: uPlot): Hover | null {
  const { left, top, idx } = plot.cursor;
  if (left === undefined || left < 0 || idx === null || idx === undefined) return null;
  return {
    index: idx,
    left: left + plot.over.offsetLeft,
    top: (top ?? 0) + plot.over.offsetTop,
    isOwn: plot.cursor.event !== undefined && plot.cursor.event !== null,
  };
}

function zoomed(plot: uPlot, current: Current): void {
  if (plot.select.width < 4) return;
  const range: [number, number] = [
    plot.posToVal(plot.select.left, "x"),
    plot.posToVal(plot.select.left + plot.select.width, "x"),
  ];
  current.onZoom?.(range);
}

/** A stretch in which nothing was trained, from one pixel to another; what is beside the chart is clipped. */
function shade({ ctx, bbox }: uPlot, from: number, to: number): void {
  ctx.fillStyle = `${style("--waiting")}22`;
  ctx.fillRect(from, bbox.top, Math.max(0, to - from), bbox.height);
}

/** What happened, as lines from top to bottom with a sign; what cannot be drawn, as signs at the edge. */
function drawMarks(plot: uPlot, { marks, aligned, lines }: Current): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
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
    const left = plot.valToPos(x, "x", true);
    if (!Number.isFinite(left)) continue;
    ctx.fillStyle = lines[line]?.stroke.color ?? "#888";
    const sign = Number.isNaN(value) ? "✕" : value > 0 ? "▲" : "▼";
    ctx.fillText(sign, left, value > 0 ? bbox.top + 24 * ratio : bbox.top + bbox.height - 4 * ratio);
  }
  ctx.restore();
}
