import { type Ref, useCallback } from "react";
import { useLateText } from "@/hooks/useLateText";
import type { LogFilter } from "@/services/logs";
import { Button } from "../base/Button";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

interface Props {
  filter: LogFilter;
  change: (change: Partial<LogFilter>) => void;
  ranks: readonly number[];
  attempts: readonly { id: string; title: string }[];
  inputRef: Ref<HTMLInputElement>;
}

const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] as const;
const PAUSE_MS = 350;

/** Log filters. */
export function LogControls({ filter, change, ranks, attempts, inputRef }: Props) {
  const find = useCallback((search: string) => change({ search }), [change]);
  const [typed, setTyped, send] = useLateText(filter.search, find, PAUSE_MS);
  const toggle = (level: string) =>
    change({
      levels: filter.levels.includes(level)
        ? filter.levels.filter((each) => each !== level)
        : [...filter.levels, level],
    });
  return (
    <div className={layout.row} role="group" aria-label="Log filters">
      <input
        ref={inputRef}
        type="search"
        className={layout.grow}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onBlur={send}
        placeholder="Find in the log"
        aria-label="Find in the log"
        spellCheck={false}
      />
      <Button aria-pressed={filter.regex} onClick={() => change({ regex: !filter.regex })} title="Regular expression">
        .*
      </Button>
      {LEVELS.map((level) => (
        <Button key={level} aria-pressed={filter.levels.includes(level)} onClick={() => toggle(level)}>
          {level.toLowerCase()}
        </Button>
      ))}
      {ranks.length > 1 && (
        <label>
          <span className={typography.soft}>Rank</span>
          <select
            value={filter.rankIds[0] ?? ""}
            onChange={(event) => change({ rankIds: event.target.value === "" ? [] : [Number(event.target.value)] })}
          >
            <option value="">all</option>
            {ranks.map((rank) => (
              <option key={rank} value={rank}>
                {rank}
              </option>
            ))}
          </select>
        </label>
      )}
      {attempts.length > 1 && (
        <label>
          <span className={typography.soft}>Attempt</span>
          <select
            value={filter.allocationIds[0] ?? ""}
            onChange={(event) => change({ allocationIds: event.target.value === "" ? [] : [event.target.value] })}
          >
            <option value="">all</option>
            {attempts.map((attempt) => (
              <option key={attempt.id} value={attempt.id}>
                {attempt.title}
              </option>
            ))}
          </select>
        </label>
      )}
    </div>
  );
}
