import styles from "./Loading.module.css";
/** Shown only where there is nothing older to show. */
export function Loading({ what }: { what: string }) {
  return (
    <div className={styles.loading} role="status" data-testid="loading">
      Loading {what}…
    </div>
  );
}
