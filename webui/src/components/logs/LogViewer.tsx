import { clsx } from "clsx";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useSearchParams } from "react-router";
import { messageOf } from "@/api/problem";
import { setPreferences, usePreferences } from "@/browser/preferences";
import { grouped } from "@/format/number";
import { useActions } from "@/keyboard/actions";
import { downloadUrl, fetchFirstError, type LogFilter, type LogLine, NO_FILTER } from "@/services/logs";
import { Button } from "../base/Button";
import { EmptyState } from "../base/EmptyState";
import { useSay } from "../base/Toasts";
import { errorBlock } from "./errorBlock";
import { LineDialog } from "./LineDialog";
import { type LogSearch, readSearch, startOf, windowFilter, writeSearch } from "./logAddress";
import { LogControls } from "./LogControls";
import { LogFind } from "./LogFind";
import { LogLines } from "./LogLines";
import { useFirstNumber } from "./useFirstNumber";
import { useLogMatches } from "./useLogMatches";
import { useLogWindow } from "./useLogWindow";
import { indexOf } from "./window";
import buttonStyles from "@/components/base/Button.module.css";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./LogViewer.module.css";

interface Props {
  trialId: number;
  taskId: string;
  ranks: readonly number[];
  attempts: readonly { id: string; title: string }[];
  isLive: boolean;
}

const EVERYTHING: LogSearch = { ...NO_FILTER, onlyMatches: false };
const NO_LINES: ReadonlySet<number> = new Set();

function isUnfiltered({ levels, rankIds, allocationIds, search }: LogFilter): boolean {
  return levels.length + rankIds.length + allocationIds.length === 0 && search === "";
}

/** The log of a trial: search, filters, the first error, and new lines. */
export function LogViewer({ trialId, taskId, ranks, attempts, isLive }: Props) {
  const [params, setParams] = useSearchParams();
  const say = useSay();
  const inAddress = useMemo(() => readSearch(params), [params]);
  const filter = useMemo(() => inAddress, [JSON.stringify(inAddress)]); // eslint-disable-line react-hooks/exhaustive-deps -- an equal search in another address is the same
  const ofWindow = windowFilter(filter);
  const shown = useMemo(() => ofWindow, [JSON.stringify(ofWindow)]); // eslint-disable-line react-hooks/exhaustive-deps -- a search that hides no line does not change the window
  const change = useCallback(
    (next: Partial<LogSearch>) =>
      setParams((now) => writeSearch(now, next), { replace: true, preventScrollReset: true }),
    [setParams],
  );
  const [startAt] = useState(() => {
    const place = startOf(params);
    return "around" in place ? place.around : null;
  });
  const [target, setTarget] = useState<number | null>(startAt);
  const [errorAt, setErrorAt] = useState<number | null>(null);
  const [follow, setFollow] = useState(startAt === null && isLive);
  const [starts, setStarts] = useState(0);
  const [chosen, setChosen] = useState<LogLine | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const log = useLogWindow(trialId, taskId, shown, target);
  const matches = useLogMatches(
    trialId,
    filter,
    filter.search !== "" && !filter.onlyMatches,
    log.extent?.lastId ?? null,
  );
  const block = useMemo(
    () => (errorAt === null ? null : errorBlock(log.window.lines, errorAt)),
    [log.window.lines, errorAt],
  );
  const marked = block?.exceptionId ?? target;
  const firstNumber = useFirstNumber(trialId, log.window, isUnfiltered(shown));
  const narrow = useCallback(
    (next: Partial<LogSearch>) => {
      setTarget(null);
      setErrorAt(null);
      change(next);
    },
    [change],
  );
  const toLine = async (id: number) => {
    setFollow(false);
    setErrorAt(null);
    setTarget(id);
    if (indexOf(log.window, id) < 0) await log.jump({ around: id });
  };
  const matchAt = target === null ? -1 : matches.ids.indexOf(target);
  const goToMatch = (by: 1 | -1) => {
    const { ids } = matches;
    const next = matchAt < 0 ? (by === 1 ? 0 : ids.length - 1) : (matchAt + by + ids.length) % ids.length;
    if (ids[next] !== undefined) void toLine(ids[next]);
  };
  const firstMatch = matches.ids[0] ?? null;
  useEffect(() => {
    if (firstMatch !== null && target === null) void toLine(firstMatch);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- when a search has found its first line, not when the view moves
  }, [firstMatch]);
  const firstError = async () => {
    try {
      const line = await fetchFirstError(trialId);
      if (!line) {
        say({ text: "No error in this log" });
        return;
      }
      const isHidden = !isUnfiltered(shown);
      // If lines are hidden, a new window that starts at the target is fetched.
      if (isHidden || filter.search) change(EVERYTHING);
      if (isHidden) {
        setFollow(false);
        setTarget(line.id);
      } else await toLine(line.id);
      setErrorAt(line.id);
    } catch (error) {
      say({ text: messageOf(error), kind: "failed" });
    }
  };
  const toStart = () => {
    setFollow(false);
    setTarget(null);
    setErrorAt(null);
    void log.jump({ after: 0 }).then(() => setStarts((count) => count + 1));
  };
  const toEnd = () => {
    setTarget(null);
    setErrorAt(null);
    setFollow(true);
    void log.jump({});
  };
  useActions([
    { id: "log-find", title: "Find in the log", keys: "/", group: "Log", run: () => input.current?.focus() },
    { id: "log-error", title: "First error", keys: "e", group: "Log", run: () => void firstError() },
    { id: "log-start", title: "Start of the log", keys: "Home", group: "Log", run: toStart },
    { id: "log-end", title: "End of the log, and follow", keys: "End", group: "Log", run: toEnd },
  ]);
  const { wrapLogs } = usePreferences();
  const extent = log.extent;
  return (
    <section className={styles.log} aria-label="Log">
      <LogControls filter={filter} change={narrow} ranks={ranks} attempts={attempts}>
        <LogFind search={filter} change={narrow} matches={matches} at={matchAt} go={goToMatch} inputRef={input} />
      </LogControls>
      <div className={layout.row}>
        <Button
          onClick={() => void firstError()}
          why={extent && extent.errors === 0 ? "No error in this log" : undefined}
        >
          First error
        </Button>
        <Button onClick={toStart}>Start</Button>
        <Button onClick={toEnd} aria-pressed={follow}>
          {isLive ? "Follow the end" : "End"}
        </Button>
        {extent && extent.firstId !== null && extent.lastId !== null && extent.count > 1000 && (
          <label className={layout.grow}>
            <span className={typography.visuallyHidden}>Place in the log</span>
            <input
              type="range"
              className={layout.grow}
              min={extent.firstId}
              max={extent.lastId}
              value={target ?? log.window.lines[Math.floor(log.window.lines.length / 2)]?.id ?? extent.lastId}
              onChange={(event) => void toLine(Number(event.target.value))}
            />
          </label>
        )}
        <Button aria-pressed={wrapLogs} onClick={() => setPreferences({ wrapLogs: !wrapLogs })}>
          Wrap lines
        </Button>
        <span className={clsx(typography.soft, typography.number)}>
          {extent ? `${grouped(extent.count)} lines` : ""}
        </span>
        <a className={clsx(buttonStyles.button, buttonStyles.quiet)} href={downloadUrl(trialId)} download>
          Download
        </a>
      </div>
      {(log.problem || matches.problem) && (
        <p className={typography.problem} role="alert">
          {log.problem || matches.problem}
        </p>
      )}
      {log.searching !== null && (
        <p className={layout.row} role="status">
          Searched up to line {grouped(log.searching)}… <Button onClick={log.stop}>Stop</Button>
        </p>
      )}
      {log.window.lines.length === 0 && !log.busy ? (
        <EmptyState
          title={
            log.stopped !== null
              ? `Nothing found up to line ${grouped(log.stopped)}, where it was stopped`
              : extent && extent.count > 0
                ? "No line matches"
                : "The log is empty"
          }
          command={`det trial logs ${trialId} -f`}
        />
      ) : (
        <LogLines
          window={log.window}
          search={filter.regex ? "" : filter.search}
          target={marked}
          block={block?.ids ?? NO_LINES}
          firstNumber={firstNumber}
          starts={starts}
          wrap={wrapLogs}
          follow={follow && log.window.atEnd}
          onScrolledUp={() => setFollow(false)}
          older={log.older}
          newer={log.newer}
          onChoose={setChosen}
        />
      )}
      {chosen && (
        <LineDialog
          line={chosen}
          number={firstNumber === null ? null : firstNumber + indexOf(log.window, chosen.id)}
          onClose={() => setChosen(null)}
        />
      )}
    </section>
  );
}
