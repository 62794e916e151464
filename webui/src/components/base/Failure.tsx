import { messageOf, Problem } from "@/api/problem";
import { Button } from "./Button";
import { EmptyState } from "./EmptyState";
import { escapeControl } from "@/format/escapeControl";
import styles from "./Failure.module.css";

/** A loading error in the master's words, with a retry button. */
export function Failure({ error, retry, gone }: { error: unknown; retry?: () => void; gone?: string }) {
  if (error instanceof Problem && error.isMissing) {
    return (
      <EmptyState title={gone ?? "Not found"}>It was deleted, or the address is wrong: {error.message}.</EmptyState>
    );
  }
  return (
    <div className={styles.failure} role="alert">
      <p>{escapeControl(messageOf(error))}</p>
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}
