import { useQuery } from "@tanstack/react-query";
import { useContext, useDeferredValue, useState, useSyncExternalStore } from "react";
import { useNavigate } from "react-router";
import { Dialog } from "@/components/base/Dialog";
import { wireFilter } from "@/filter/wire";
import { stateLook } from "@/format/states";
import { escapeControl } from "@/format/escapeControl";
import { Actions } from "@/keyboard/actions";
import { KeyCaps } from "@/keyboard/KeyCaps";
import { overviewQuery } from "@/services/cluster";
import { rowsQuery } from "@/services/columns";
import { usersQuery } from "@/services/users";
import typography from "@/styles/typography.module.css";
import styles from "./Palette.module.css";

interface Entry {
  id: string;
  title: string;
  note?: string;
  keys?: string | undefined;
  disabled?: string | undefined;
  run: () => void;
}

const DISPLAY_LIMIT = 60;

/** Finds pages, objects and actions by a part of their name. */
export function Palette({ onClose }: { onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const entries = useEntries(useDeferredValue(typed.trim()));
  const chosen = Math.min(at, entries.length - 1);
  const run = (entry: Entry | undefined) => {
    if (!entry || entry.disabled !== undefined) return;
    onClose();
    entry.run();
  };
  return (
    <Dialog open onClose={onClose} title="Search">
      <input
        autoFocus
        className={styles.input}
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={chosen >= 0 ? `palette-${chosen}` : undefined}
        aria-label="Find an experiment, a trial, an agent, a user or an action"
        placeholder="An experiment, trial 12, an agent, pause…"
        value={typed}
        onChange={(event) => {
          setTyped(event.target.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setAt(Math.min(entries.length - 1, chosen + 1));
          else if (event.key === "ArrowUp") setAt(Math.max(0, chosen - 1));
          else if (event.key === "Enter") run(entries[chosen]);
          else return;
          event.preventDefault();
        }}
      />
      <div className={styles.list} id="palette-list" role="listbox" aria-label="Results" tabIndex={-1}>
        {entries.map((entry, index) => (
          <div
            key={entry.id}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === chosen}
            aria-disabled={entry.disabled !== undefined}
            className={styles.item}
            ref={(element) => {
              if (index === chosen) element?.scrollIntoView({ block: "nearest" });
            }}
            // The focus stays in the input.
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => run(entry)}
          >
            <span>
              {escapeControl(entry.title)} {entry.note && <small className={typography.soft}>{entry.note}</small>}
            </span>
            {entry.disabled ? <small>{entry.disabled}</small> : entry.keys ? <KeyCaps keys={entry.keys} /> : null}
          </div>
        ))}
      </div>
      {entries.length === 0 && <p className={typography.hint}>No results.</p>}
    </Dialog>
  );
}

function useEntries(typed: string): Entry[] {
  const navigate = useNavigate();
  const registry = useContext(Actions);
  const actions = useSyncExternalStore(registry.subscribe, registry.all);
  const filter = wireFilter(
    typed ? { kind: "field", column: "name", operator: "contains", value: typed } : null,
    false,
  );
  const found = useQuery(rowsQuery({ filter, sort: "id=desc", showArchived: false }, [], 0));
  const { data: overview } = useQuery(overviewQuery);
  const { data: users } = useQuery(usersQuery);
  const has = (text: string) => text.toLowerCase().includes(typed.toLowerCase());
  const entries: Entry[] = [];
  const [, word, number] = /^(trial |experiment |#)?(\d+)$/i.exec(typed) ?? [];
  if (number) {
    entries.push({ id: "e#", title: `Experiment ${number}`, run: () => void navigate(`/experiments/${number}`) });
    entries.push({ id: "t#", title: `Trial ${number}`, run: () => void navigate(`/trials/${number}`) });
    if (word?.toLowerCase() === "trial ") entries.reverse();
  }
  for (const action of actions) {
    if (!action.hidden && has(action.title))
      entries.push({
        id: `a:${action.id}`,
        title: action.title,
        note: action.group,
        keys: action.keys,
        disabled: action.disabled,
        run: action.run,
      });
  }
  for (const row of found.data?.experiments.slice(0, 25) ?? []) {
    entries.push({
      id: `e:${row.id}`,
      title: row.name,
      note: `experiment ${row.id}, ${stateLook(row.state).word}`,
      run: () => void navigate(`/experiments/${row.id}`),
    });
  }
  for (const agent of overview?.agents ?? [])
    if (has(agent.id))
      entries.push({ id: `m:${agent.id}`, title: agent.id, note: "agent", run: () => void navigate("/cluster") });
  for (const user of users ?? [])
    if (has(user.username))
      entries.push({
        id: `u:${user.id}`,
        title: user.username,
        note: "user: their experiments",
        run: () => void navigate(`/?q=${encodeURIComponent(`user = "${user.username}"`)}`),
      });
  return entries.slice(0, DISPLAY_LIMIT);
}
