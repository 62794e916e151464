import type { ReactNode } from "react";
import { CopyText } from "./CopyText";
import styles from "./EmptyState.module.css";

/** A note that a list is empty, with the command that adds the first entry. */
export function EmptyState({ title, command, children }: { title: string; command?: string; children?: ReactNode }) {
  return (
    <div className={styles.empty}>
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {command && <CopyText text={command} />}
    </div>
  );
}
