import { type Ref, useEffect, useImperativeHandle, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { usePreferences, useShownTheme, zone } from "@/browser/preferences";
import { figure } from "@/format/number";
import type { XAxis } from "@/services/series";
import { align } from "./alignment";
import { type Hover, HoverNote } from "./HoverNote";
import type { ChartLine, ChartMark } from "./line";
import { options } from "./plotOptions";
import { picture } from "./picture";
import typography from "@/styles/typography.module.css";
import styles from "./LineChart.module.css";

export interface ChartHandle {
  /** Returns a PNG of the plot with its title and the names of its lines. */
  picture: () => Promise<Blob>;
}

interface Props {
  title: string;
  lines: readonly ChartLine[];
  marks?: readonly ChartMark[];
  x: XAxis;
  logX?: boolean;
  logY?: boolean;
  height?: number;
  /** Charts with the same key share the cursor. */
  syncKey?: string;
  /** Keys of hidden lines. */
  hidden?: ReadonlySet<string>;
  /** Key of the highlighted line. */
  highlighted?: string | null;
  /** Visible range of x; null shows everything. */
  zoom?: readonly [number, number] | null;
  /** Called with the selected range, in units of x; null resets the zoom. */
  onZoom?: (range: [number, number] | null) => void;
  ref?: Ref<ChartHandle>;
}

const NONE: ReadonlySet<string> = new Set();

/** Line chart. Drag to zoom, double click to reset. */
export function LineChart({
  title,
  lines,
  marks = [],
  x,
  logX = false,
  logY = false,
  height = 240,
  syncKey,
  hidden = NONE,
  highlighted = null,
  zoom = null,
  onZoom,
  ref,
}: Props) {
  const preferences = usePreferences();
  const theme = useShownTheme();
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [hover, setHover] = useState<Hover | null>(null);
  const aligned = useMemo(() => align(lines, logX, logY), [lines, logX, logY]);
  const newest = useRef({ lines, marks, aligned, hidden, zoom, onZoom });
  useEffect(() => {
    newest.current = { lines, marks, aligned, hidden, zoom, onZoom };
  });
  // Another set of lines needs a new plot; new points of the same lines do not.
  const shape = JSON.stringify([
    lines.map((line) => [line.key, line.stroke, !!line.raw, !!line.band, hidden.has(line.key)]),
    x,
    logX,
    logY,
    height,
    syncKey,
    preferences,
    theme,
  ]);
  const wanted = {
    height,
    x,
    logX,
    logY,
    timeZone: zone(preferences),
    current: () => newest.current,
  };
  useEffect(() => {
    const element = place.current!;
    setHover(null);
    const made = new uPlot(
      options({ ...wanted, width: element.clientWidth || 480, syncKey, onHover: setHover }),
      newest.current.aligned.data,
      element,
    );
    plot.current = made;
    const resized = new ResizeObserver(
      () => element.clientWidth > 0 && made.setSize({ width: element.clientWidth, height }),
    );
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = null;
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `shape` represents all of them
  }, [shape]);
  const [from, to] = zoom ?? [null, null];
  useEffect(() => {
    // This sets the scales as well.
    plot.current?.setData(aligned.data);
  }, [aligned, from, to]);
  useEffect(() => {
    const index = lines.findIndex((line) => line.key === highlighted);
    plot.current?.setSeries(index < 0 ? null : aligned.columns[index]!.line, { focus: true }, false);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- a plot that was recreated (`shape`) has no highlighted line
  }, [highlighted, shape]);
  useEffect(() => {
    // A plot without points has no axes to redraw.
    if (plot.current && plot.current.data[0].length > 0) plot.current.redraw(false);
  }, [marks]);
  useImperativeHandle(ref, () => ({
    picture: () => picture((factor) => offScreen(plot.current!.width, wanted, factor), title, newest.current),
  }));
  const summary = useMemo(() => summaryOf(title, lines, x), [title, lines, x]);
  return (
    <div className={styles.chart}>
      <div ref={place} className={styles.plot} role="img" aria-label={summary} style={{ height }} />
      {hover && (
        <HoverNote hover={hover} lines={lines} hidden={hidden} columns={aligned.columns} data={aligned.data} x={x} />
      )}
      {aligned.lost.length > 0 && (
        <p className={typography.hint}>
          {aligned.lost.length} {aligned.lost.length === 1 ? "point is" : "points are"} not drawn as a line:{" "}
          {lostWords(aligned.lost, logY)}.
        </p>
      )}
    </div>
  );
}

type Wanted = Omit<Parameters<typeof options>[0], "width" | "syncKey" | "onHover">;

/** Renders the plot off screen at a multiple of its size. */
async function offScreen(width: number, wanted: Wanted, factor: number): Promise<uPlot> {
  const size = { width: width * factor, height: wanted.height * factor };
  const made = new uPlot(
    options({ ...wanted, ...size, syncKey: undefined, onHover: () => undefined, factor }),
    wanted.current().aligned.data,
  );
  // uPlot draws after the running code has ended.
  await new Promise((resolve) => setTimeout(resolve));
  return made;
}

function lostWords(lost: readonly { value: number }[], logY: boolean): string {
  const count = (keep: (value: number) => boolean) => lost.filter(({ value }) => keep(value)).length;
  const parts = [
    [count(Number.isNaN), "NaN"],
    [count((value) => value === Infinity), "+∞"],
    [count((value) => value === -Infinity), "−∞"],
    [logY ? count((value) => value <= 0 && Number.isFinite(value)) : 0, "not positive"],
  ] as const;
  return parts
    .filter(([number]) => number > 0)
    .map(([number, word]) => `${number} ${word}`)
    .join(", ");
}

/** Returns a description of the chart for screen readers: numbers of lines and points, and their range. */
function summaryOf(title: string, lines: readonly ChartLine[], x: XAxis): string {
  const points = lines.reduce((sum, line) => sum + line.x.length, 0);
  const last = Math.max(...lines.map((line) => line.x.at(-1) ?? -Infinity));
  const far = x === "time" || !Number.isFinite(last) ? "" : ` to ${x === "epochs" ? "epoch" : "step"} ${figure(last)}`;
  return `${title}: ${lines.length === 1 ? "one line" : `${lines.length} lines`}, ${points} ${points === 1 ? "point" : "points"}${far}`;
}
