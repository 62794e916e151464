import { useState } from "react";
import { Popover } from "@/components/base/Popover";
import { escapeControl } from "@/format/escapeControl";
import { partShown, type SummaryChoice } from "./summary";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./SummaryColumns.module.css";

const DISPLAY_LIMIT = 60;

const KINDS = [
  { kind: "metric", title: "Metrics" },
  { kind: "hyperparameter", title: "Hyperparameters that differ" },
] as const;

interface Props {
  choices: readonly SummaryChoice[];
  shown: readonly SummaryChoice[];
  onChange: (keys: string[]) => void;
}

/** Shows which part of the metrics and hyperparameters the summary contains, and lets the user choose among all. */
export function SummaryColumns(props: Props) {
  const part = partShown(props.choices, props.shown);
  if (props.choices.length === 0) return null;
  return (
    <div className={layout.row}>
      <Popover label="Columns of the summary" trigger="Columns">
        <Choice {...props} />
      </Popover>
      {part && <span className={typography.soft}>Shows {part}.</span>}
    </div>
  );
}

function Choice({ choices, shown, onChange }: Props) {
  const [query, setQuery] = useState("");
  const keys = shown.map(({ key }) => key);
  const found = choices.filter(({ title }) => title.toLowerCase().includes(query.trim().toLowerCase()));
  const toggle = (key: string) => onChange(keys.includes(key) ? keys.filter((each) => each !== key) : [...keys, key]);
  return (
    <>
      <input
        type="search"
        value={query}
        onChange={(event) => setQuery(event.target.value)}
        placeholder="Find a column"
        aria-label="Find a column"
      />
      <div className={styles.choices}>
        {KINDS.map(({ kind, title }) => {
          const all = found.filter((choice) => choice.kind === kind);
          if (all.length === 0) return null;
          return (
            <section key={kind} className={styles.kind} aria-label={title}>
              <h3>{title}</h3>
              {all.slice(0, DISPLAY_LIMIT).map((choice) => (
                <label key={choice.key}>
                  <input
                    type="checkbox"
                    checked={keys.includes(choice.key)}
                    disabled={keys.length === 1 && keys[0] === choice.key}
                    onChange={() => toggle(choice.key)}
                  />{" "}
                  {escapeControl(choice.title)}
                </label>
              ))}
              {all.length > DISPLAY_LIMIT && (
                <p className={typography.hint}>{all.length - DISPLAY_LIMIT} more: type a part of the name.</p>
              )}
            </section>
          );
        })}
        {found.length === 0 && <p className={typography.hint}>No column has this in its name.</p>}
      </div>
    </>
  );
}
