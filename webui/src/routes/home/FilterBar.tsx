import { type Ref, useId } from "react";
import type { FilterProblem } from "@/filter/tokens";
import { useLateText } from "@/hooks/useLateText";

interface Props {
  query: string;
  problem: FilterProblem | null;
  /** What the master did not like about it. */
  refusal: string;
  onChange: (query: string) => void;
  inputRef: Ref<HTMLInputElement>;
}

const EXAMPLES = ["state = running", "hp.lr < 0.01 and tag ~ base", "validation.loss.min < 0.2", "started > 2d", "(user = ana or user = kim) and name ~ digits"];
const PAUSE_MS = 250;

/** One line in which everything can be asked for; where it cannot be read it says where, and the list stays. */
export function FilterBar({ query, problem, refusal, onChange, inputRef }: Props) {
  const [typed, setTyped, send] = useLateText(query, onChange, PAUSE_MS);
  const hint = useId();
  const wrong = problem ? `${problem.message} (place ${problem.at + 1})` : refusal;
  return (
    <div className="filter grow">
      <input
        ref={inputRef}
        type="search"
        className="filter-input"
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
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
        {EXAMPLES.map((example) => (
          <option key={example} value={example} />
        ))}
      </datalist>
      <div id={hint} className={wrong ? "field-problem" : "visually-hidden"} role={wrong ? "alert" : undefined}>
        {wrong || "Columns, signs = != < <= > >= ~ !~, is empty, and, or, parentheses"}
      </div>
    </div>
  );
}
