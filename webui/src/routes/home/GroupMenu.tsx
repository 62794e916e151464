import { useQuery } from "@tanstack/react-query";
import { useIdle } from "@/browser/idleCallback";
import { escapeControl } from "@/format/escapeControl";
import { columnsQuery } from "@/services/columns";
import { lookOf } from "./columns";
import typography from "@/styles/typography.module.css";

const OFTEN = ["state", "user", "tags", "searcherType", "resourcePool", "forkedFrom"];

/** Chooses the column by which the list is grouped. */
export function GroupMenu({ group, onChange }: { group: string; onChange: (group: string) => void }) {
  const { data } = useQuery({ ...columnsQuery("hp.", 100), enabled: useIdle() });
  const hyperparameters = (data?.columns ?? [])
    .filter(({ kind }) => kind === "hyperparameter")
    .map(({ column }) => column);
  const choices = [...OFTEN, ...hyperparameters];
  return (
    <label>
      <span className={typography.soft}>Group</span>
      <select value={group} onChange={(event) => onChange(event.target.value)}>
        <option value="">none</option>
        {(group && !choices.includes(group) ? [group, ...choices] : choices).map((column) => (
          <option key={column} value={column}>
            {OFTEN.includes(column) ? lookOf(column).title : escapeControl(column)}
          </option>
        ))}
      </select>
    </label>
  );
}
