import { percent } from "@/format/number";
import styles from "./ProgressBar.module.css";

/** Progress as a bar and as text. */
export function ProgressBar({ fraction, label }: { fraction: number | null | undefined; label: string }) {
  const value = Math.min(1, Math.max(0, fraction ?? 0));
  return (
    <span
      className={styles.progress}
      role="progressbar"
      aria-label={label}
      aria-valuenow={Math.floor(value * 100)}
      aria-valuemin={0}
      aria-valuemax={100}
    >
      <progress className={styles.bar} max={1} value={value} aria-hidden="true" />
      <span className={styles.text}>{percent(value)}</span>
    </span>
  );
}
