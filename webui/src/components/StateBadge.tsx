import { clsx } from "clsx";
import { stateLook } from "@/format/states";
import styles from "./StateBadge.module.css";

/** A state as a sign, a word and a colour: never by colour alone. */
export function StateBadge({ state, title }: { state: string; title?: string }) {
  const look = stateLook(state);
  return (
    <span className={clsx(styles.state, styles[look.tone])} title={title} data-testid="state">
      <span aria-hidden="true">{look.sign}</span> {look.word}
    </span>
  );
}
