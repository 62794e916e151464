import { clsx } from "clsx";
import { useQuery } from "@tanstack/react-query";
import { type Ref, useId, useState } from "react";
import { completionOf } from "@/filter/completion";
import { asTyped, type FilterProblem } from "@/filter/tokens";
import { STATE_WORDS, stateLook } from "@/format/states";
import { useLateText } from "@/hooks/useLateText";
import { columnsQuery, columnValuesQuery } from "@/services/columns";
import layout from "@/styles/layout.module.css";
import styles from "./FilterBar.module.css";
import typography from "@/styles/typography.module.css";

interface Props {
  query: string;
  problem: FilterProblem | null;
  /** Reason of the master's refusal. */
  refusal: string;
  onChange: (query: string) => void;
  inputRef: Ref<HTMLInputElement>;
}

const EXAMPLES = [
  "state = running",
  "hp.lr < 0.01 and label ~ base",
  "validation.loss.min < 0.2",
  "started > 2d",
  "(user = ana or user = kim) and name ~ digits",
];
const PAUSE_MS = 250;

/** The one-line filter. If it cannot be read, it shows the place of the error and the list stays. */
export function FilterBar({ query, problem, refusal, onChange, inputRef }: Props) {
  const [typed, setTyped, send] = useLateText(query, onChange, PAUSE_MS);
  const [isUsed, setUsed] = useState(false);
  const completions = useCompletions(isUsed ? typed : "");
  const hint = useId();
  const wrong = problem ? `${problem.message} (position ${problem.at + 1})` : refusal;
  return (
    <div className={clsx(styles.filter, layout.grow)}>
      <input
        ref={inputRef}
        type="search"
        className={styles.input}
        value={typed}
        onChange={(event) => {
          setUsed(true);
          setTyped(event.target.value);
        }}
        onBlur={send}
        placeholder="Filter: a name, or state = running and hp.lr < 0.01"
        aria-label="Filter the experiments"
        aria-describedby={hint}
        aria-invalid={wrong !== ""}
        spellCheck={false}
        autoComplete="off"
        list={`${hint}-examples`}
      />
      <datalist id={`${hint}-examples`}>
        {(typed === "" ? EXAMPLES : completions).map((example) => (
          <option key={example} value={example} />
        ))}
      </datalist>
      <div
        id={hint}
        className={wrong ? typography.problem : typography.visuallyHidden}
        role={wrong ? "alert" : undefined}
      >
        {wrong || "Columns, operators = != < <= > >= ~ !~, is empty, and, or, parentheses"}
      </div>
    </div>
  );
}

/** Returns the filter with its last word completed: a column, or a value of the column before it. */
function useCompletions(typed: string): string[] {
  const found = completionOf(typed);
  const isColumn = found?.kind === "column";
  const { data: columns } = useQuery({ ...columnsQuery(isColumn ? found.word : "", 12), enabled: isColumn });
  const column = found?.kind === "value" && found.column !== "state" ? found.column : "";
  const { data: values } = useQuery(columnValuesQuery(column, found?.word ?? ""));
  if (found === null) return [];
  const states = STATE_WORDS.map((state) => stateLook(state).word).filter((word) =>
    word.startsWith(found.word.toLowerCase()),
  );
  const words = isColumn
    ? (columns?.columns ?? []).map(({ column }) => (column === "tags" ? "label" : column))
    : found.column === "state"
      ? states
      : (values ?? []);
  return words.map((word) => found.prefix + asTyped(word));
}
