import styles from "./Switch.module.css";

interface Props {
  /** Text beside the switch. */
  label: string;
  /** Accessible name. */
  name: string;
  on: boolean;
  /** Reason why the switch is disabled. */
  why?: string | undefined;
  onChange: () => void;
}

/** A switch that takes effect immediately. */
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
