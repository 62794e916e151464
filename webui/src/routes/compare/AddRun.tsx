import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Popover } from "@/components/base/Popover";
import { StateBadge } from "@/components/StateBadge";
import type { Filter } from "@/filter/language";
import { wireFilter } from "@/filter/wire";
import { escapeControl } from "@/format/escapeControl";
import { useLateText } from "@/hooks/useLateText";
import { rowsQuery } from "@/services/columns";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import buttonStyles from "@/components/base/Button.module.css";
import styles from "./AddRun.module.css";

const DISPLAY_LIMIT = 8;
const PAUSE_MS = 250;

interface Props {
  /** Experiments in the comparison. */
  chosen: readonly number[];
  add: (experimentId: number) => void;
}

/** A button that finds another experiment by its id or name and adds its best trial to the comparison. */
export function AddRun({ chosen, add }: Props) {
  return (
    <Popover label="Add run" trigger="+ Add run">
      <Finder chosen={chosen} add={add} />
    </Popover>
  );
}

function Finder({ chosen, add }: Props) {
  const [query, setQuery] = useState("");
  const [typed, setTyped, send] = useLateText(query, setQuery, PAUSE_MS);
  const { data } = useQuery(rowsQuery({ filter: filterOf(query.trim()), sort: "", showArchived: false }, [], 0));
  const found = (data?.experiments ?? []).filter(({ id, trialId }) => !chosen.includes(id) && trialId !== null);
  return (
    <div className={layout.field}>
      <input
        type="search"
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={(event) => event.key === "Enter" && send()}
        placeholder="ID or part of the name"
        aria-label="Find a run by ID or name"
        autoFocus
      />
      <ul className={styles.found} aria-label="Runs found">
        {found.slice(0, DISPLAY_LIMIT).map((row) => (
          <li key={row.id}>
            <button
              type="button"
              className={`${buttonStyles.button} ${buttonStyles.quiet}`}
              onClick={() => add(row.id)}
            >
              {row.id} {escapeControl(row.name)} <StateBadge state={row.state} />
            </button>
          </li>
        ))}
      </ul>
      {data && found.length === 0 && <p className={typography.hint}>No other run with a trial matches.</p>}
    </div>
  );
}

/** Matches part of the name; digits also match the id. */
function filterOf(text: string): string {
  if (text === "") return wireFilter(null, false);
  const children: Filter[] = [{ kind: "field", column: "name", operator: "contains", value: text }];
  if (/^\d{1,9}$/.test(text)) children.push({ kind: "field", column: "id", operator: "=", value: Number(text) });
  return wireFilter({ kind: "group", conjunction: "or", children }, false);
}
