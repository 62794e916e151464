import { clsx } from "clsx";
import styles from "./Icon.module.css";

interface Shape {
  /** Outlines on a field of 16 by 16. */
  line?: string;
  /** Filled areas. */
  area?: string;
  dashed?: boolean;
}

const RING = "M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3z";
const SHAPES = {
  list: { line: "M2 4h12M2 8h12M2 12h12" },
  grid: { line: "M2.5 2.5H7V7H2.5zM9 2.5h4.5V7H9zM2.5 9H7v4.5H2.5zM9 9h4.5v4.5H9z" },
  database: {
    line: "M3 4c0-1.1 2.2-2 5-2s5 .9 5 2-2.2 2-5 2-5-.9-5-2zm0 0v8c0 1.1 2.2 2 5 2s5-.9 5-2V4M3 8c0 1.1 2.2 2 5 2s5-.9 5-2",
  },
  clock: { line: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zm0 2.5V8l2.5 1.5" },
  person: { line: "M8 2a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM2.5 14c0-2.8 2.4-4.5 5.5-4.5s5.5 1.7 5.5 4.5" },
  gear: {
    line: "M8 3.7a4.3 4.3 0 1 1 0 8.6 4.3 4.3 0 0 1 0-8.6zm0 2.6a1.7 1.7 0 1 1 0 3.4 1.7 1.7 0 0 1 0-3.4zM8 1.3v2.2M8 12.5v2.2M1.3 8h2.2M12.5 8h2.2M3.3 3.3l1.5 1.5M11.2 11.2l1.5 1.5M3.3 12.7l1.5-1.5M11.2 4.8l1.5-1.5",
  },
  close: { line: "M4 4l8 8M12 4l-8 8" },
  check: { line: "M3 8.5 6.5 12 13 4.5" },
  pencil: { line: "M10.5 3 13 5.5 6 12.5 3 13l.5-3z" },
  down: { line: "M4 6l4 4 4-4" },
  right: { line: "M6 4l4 4-4 4" },
  arrowUp: { line: "M8 13V3M4 7l4-4 4 4" },
  arrowDown: { line: "M8 3v10M4 9l4 4 4-4" },
  star: { area: "M8 1.5 9.9 5.7l4.6.5-3.4 3.1.9 4.5-4-2.3-4 2.3.9-4.5L1.5 6.2l4.6-.5z" },
  dot: { area: RING },
  ring: { line: RING },
  dashedRing: { line: RING, dashed: true },
  quarter: { line: RING, area: "M8 3v5h5a5 5 0 0 0-5-5z" },
  half: { line: RING, area: "M8 3a5 5 0 0 1 0 10z" },
  play: { area: "M3.5 2v12L14 8z" },
  pause: { area: "M3 2.5h3.5v11H3zm6.5 0H13v11H9.5z" },
  square: { area: "M3.5 3.5h9v9h-9z" },
  restart: { line: "M12.5 8a4.5 4.5 0 1 1-1.4-3.3M11.3 1.8V5H8.1" },
} satisfies Record<string, Shape>;

export type IconName = keyof typeof SHAPES;

/** An icon with the height and colour of the surrounding text. Its meaning is always given in words as well. */
export function Icon({ name }: { name: IconName }) {
  const { line, area, dashed }: Shape = SHAPES[name];
  return (
    <svg className={styles.icon} viewBox="0 0 16 16" aria-hidden="true" focusable="false" data-icon={name}>
      {line && <path className={clsx(styles.line, dashed && styles.dashed)} d={line} />}
      {area && <path className={styles.area} d={area} />}
    </svg>
  );
}
