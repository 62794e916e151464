import { type Ref, useCallback } from "react";
import { grouped } from "@/format/number";
import { useLateText } from "@/hooks/useLateText";
import { Button } from "../base/Button";
import { Icon } from "../base/Icon";
import type { LogSearch } from "./logAddress";
import { type LogMatches, MAX_MATCHES } from "./useLogMatches";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

interface Props {
  search: LogSearch;
  change: (change: Partial<LogSearch>) => void;
  matches: LogMatches;
  /** Index of the current match; -1 for none. */
  at: number;
  go: (by: 1 | -1) => void;
  inputRef: Ref<HTMLInputElement>;
}

const PAUSE_MS = 350;

/** Search field of a log: text, number of matches, previous and next. */
export function LogFind({ search, change, matches, at, go, inputRef }: Props) {
  const find = useCallback((text: string) => change({ search: text }), [change]);
  const [typed, setTyped, send] = useLateText(search.search, find, PAUSE_MS);
  const visits = search.search !== "" && !search.onlyMatches;
  const why = matches.ids.length === 0 ? "No line matches" : undefined;
  return (
    <>
      <input
        ref={inputRef}
        type="search"
        className={layout.grow}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onBlur={send}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          if (typed === search.search) go(event.shiftKey ? -1 : 1);
          else send();
        }}
        placeholder="Find in the log"
        aria-label="Find in the log"
        spellCheck={false}
      />
      {visits && (
        <>
          <span className={typography.number} role="status">
            {countOf(matches, at)}
          </span>
          <Button aria-label="Previous match" title="Previous match (Shift Enter)" why={why} onClick={() => go(-1)}>
            <Icon name="arrowUp" />
          </Button>
          <Button aria-label="Next match" title="Next match (Enter)" why={why} onClick={() => go(1)}>
            <Icon name="arrowDown" />
          </Button>
          {matches.isSearching && <Button onClick={matches.stop}>Stop</Button>}
        </>
      )}
      <Button aria-pressed={search.regex} onClick={() => change({ regex: !search.regex })} title="Regular expression">
        .*
      </Button>
      <Button
        aria-pressed={search.onlyMatches}
        onClick={() => change({ onlyMatches: !search.onlyMatches })}
        title="Hides the lines that do not match"
      >
        Only matches
      </Button>
    </>
  );
}

/** `3 of 17`; a count that is not complete has a plus. */
function countOf({ ids, isComplete, isSearching }: LogMatches, at: number): string {
  if (ids.length === 0) return isSearching ? "Searching…" : isComplete ? "No match" : "";
  const count = grouped(ids.length) + (isComplete && ids.length < MAX_MATCHES ? "" : "+");
  return at < 0 ? `${count} ${ids.length === 1 ? "match" : "matches"}` : `${grouped(at + 1)} of ${count}`;
}
