import styles from "./Loading.module.css";
/** Shown only if there is no older data to show. */
export function Loading({ what }: { what: string }) {
  return (
    <div className={styles.loading} role="status" data-testid="loading">
      Loading {what}…
    </div>
  );
}
