import { clsx } from "clsx";
import { stateLook } from "@/format/states";
import { Icon } from "@/components/base/Icon";
import styles from "./StateBadge.module.css";

/** A state as an icon, a word and a colour, never as a colour alone. */
export function StateBadge({ state, title }: { state: string; title?: string }) {
  const look = stateLook(state);
  return (
    <span className={clsx(styles.state, styles[look.tone])} title={title} data-testid="state">
      <Icon name={look.icon} /> <span className={styles.word}>{look.word}</span>
    </span>
  );
}
