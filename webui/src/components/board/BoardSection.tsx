import { type ReactNode, useState } from "react";
import { escapeControl } from "@/format/escapeControl";
import { Button } from "../base/Button";
import { Icon } from "../base/Icon";
import type { PanelOf, Section } from "./panels";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./MetricBoard.module.css";

const FIRST = 6;
const MORE = 12;
const DISPLAY_LIMIT = 60;

interface Props {
  section: Section;
  /** A single section has no heading. */
  isOnly: boolean;
  children: (panel: PanelOf) => ReactNode;
}

/** Panels under a heading that folds them. */
export function BoardSection({ section, isOnly, children }: Props) {
  const [toggled, setToggled] = useState(false);
  const [shown, setShown] = useState(FIRST);
  const isOpen = isOnly || section.isOpen !== toggled;
  const { title, panels } = section;
  const visible = panels.slice(0, Math.min(shown, DISPLAY_LIMIT));
  const rest = panels.length - visible.length;
  return (
    <section className={layout.field} aria-label={`Section ${title}`}>
      {!isOnly && (
        <h2>
          <button type="button" className={styles.heading} aria-expanded={isOpen} onClick={() => setToggled(!toggled)}>
            <Icon name={isOpen ? "down" : "right"} /> {escapeControl(title)}{" "}
            <span className={typography.soft}>{panels.length}</span>
          </button>
        </h2>
      )}
      {isOpen && <div className={layout.cards}>{visible.map(children)}</div>}
      {isOpen && rest > 0 && visible.length < DISPLAY_LIMIT && (
        <div>
          <Button onClick={() => setShown(shown + MORE)}>
            {Math.min(MORE, rest)} more of {rest}
          </Button>
        </div>
      )}
    </section>
  );
}
