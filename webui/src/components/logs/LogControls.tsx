import type { ReactNode } from "react";
import type { LogFilter } from "@/services/logs";
import { Button } from "../base/Button";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

interface Props {
  filter: LogFilter;
  change: (change: Partial<LogFilter>) => void;
  ranks: readonly number[];
  attempts: readonly { id: string; title: string }[];
  /** The search field. */
  children: ReactNode;
}

const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] as const;

/** Log filters. */
export function LogControls({ filter, change, ranks, attempts, children }: Props) {
  const toggle = (level: string) =>
    change({
      levels: filter.levels.includes(level)
        ? filter.levels.filter((each) => each !== level)
        : [...filter.levels, level],
    });
  return (
    <div className={layout.row} role="group" aria-label="Log filters">
      {children}
      {LEVELS.map((level) => (
        <Button key={level} aria-pressed={filter.levels.includes(level)} onClick={() => toggle(level)}>
          {level}
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
