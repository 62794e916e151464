import { useQuery } from "@tanstack/react-query";
import { escapeControl } from "@/format/escapeControl";
import { MAX_NAMES, namesQuery } from "@/services/columns";
import typography from "@/styles/typography.module.css";
import styles from "./ExperimentNames.module.css";

/** Names of experiments in a confirmation dialog. */
export function ExperimentNames({ ids }: { ids: readonly number[] }) {
  const { data } = useQuery(namesQuery(ids));
  return (
    <ul className={styles.names} aria-label="Experiments">
      {ids.slice(0, MAX_NAMES).map((id) => (
        <li key={id}>
          {id} {escapeControl(data?.get(id) ?? "")}
        </li>
      ))}
      {ids.length > MAX_NAMES && <li className={typography.soft}>and {ids.length - MAX_NAMES} more</li>}
    </ul>
  );
}
