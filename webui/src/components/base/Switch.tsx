import styles from "./Switch.module.css";

interface Props {
  /** The words beside it. */
  label: string;
  /** What is switched, with the words: read out. */
  name: string;
  on: boolean;
  /** Why it cannot be switched. */
  why?: string | undefined;
  onChange: () => void;
}

/** Turns something on or off at once. */
export function Switch({ label, name, on, why, onChange }: Props) {
  return (
    <button
      type="button"
      role="switch"
      className={styles.switch}
      aria-checked={on}
      aria-label={name}
      aria-disabled={why !== undefined || undefined}
      title={why}
      onClick={() => why === undefined && onChange()}
    >
      <span className={styles.track} aria-hidden="true" />
      {label}
    </button>
  );
}
