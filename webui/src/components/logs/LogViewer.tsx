import { clsx } from "clsx";
import { useCallback, useMemo, useRef, useState } from "react";
import { useSearchParams } from "react-router";
import { messageOf } from "@/api/problem";
import { grouped } from "@/format/number";
import { useActions } from "@/keyboard/actions";
import { downloadUrl, fetchFirstError, type LogFilter, type LogLine } from "@/services/logs";
import { Button } from "../base/Button";
import { EmptyState } from "../base/EmptyState";
import { useSay } from "../base/Toasts";
import { LineDialog } from "./LineDialog";
import { LogControls } from "./LogControls";
import { LogLines } from "./LogLines";
import { useLogWindow } from "./useLogWindow";
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

function readFilter(params: URLSearchParams): LogFilter {
  const attempt = params.get("attempt");
  const rank = params.get("rank");
  return {
    levels: params.getAll("level"),
    rankIds: rank === null || Number.isNaN(Number(rank)) ? [] : [Number(rank)],
    search: params.get("find") ?? "",
    regex: params.get("regex") === "1",
    allocationIds: attempt ? [attempt] : [],
  };
}

function writeFilter(params: URLSearchParams, change: Partial<LogFilter>): URLSearchParams {
  const filter = { ...readFilter(params), ...change };
  const next = new URLSearchParams(params);
  for (const name of ["level", "rank", "find", "regex", "attempt", "line"]) next.delete(name);
  for (const level of filter.levels) next.append("level", level);
  if (filter.rankIds[0] !== undefined) next.set("rank", String(filter.rankIds[0]));
  if (filter.search) next.set("find", filter.search);
  if (filter.regex) next.set("regex", "1");
  if (filter.allocationIds[0]) next.set("attempt", filter.allocationIds[0]);
  return next;
}

/** The log of a trial: search, filters, the first error, the end that grows. */
export function LogViewer({ trialId, taskId, ranks, attempts, isLive }: Props) {
  const [params, setParams] = useSearchParams();
  const say = useSay();
  const filter = useMemo(() => readFilter(params), [params]);
  const shown = useMemo(() => filter, [JSON.stringify(filter)]); // eslint-disable-line react-hooks/exhaustive-deps -- the same filter in another address is the same
  const change = useCallback(
    (next: Partial<LogFilter>) =>
      setParams((now) => writeFilter(now, next), { replace: true, preventScrollReset: true }),
    [setParams],
  );
  const [startAt] = useState(() => (params.get("line") ? Number(params.get("line")) : null));
  const [target, setTarget] = useState<number | null>(startAt);
  const [follow, setFollow] = useState(startAt === null && isLive);
  const [chosen, setChosen] = useState<LogLine | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const log = useLogWindow(trialId, taskId, shown, target);
  const narrow = useCallback(
    (next: Partial<LogFilter>) => {
      setTarget(null);
      change(next);
    },
    [change],
  );
  const toLine = async (id: number) => {
    setFollow(false);
    setTarget(id);
    await log.jump({ around: id });
  };
  const firstError = async () => {
    try {
      const line = await fetchFirstError(trialId);
      if (!line) {
        say({ text: "No error in this log" });
        return;
      }
      if (shown.levels.length + shown.rankIds.length + shown.allocationIds.length > 0 || shown.search) {
        // Without them another question is put, which starts at the target.
        setFollow(false);
        setTarget(line.id);
        change({ levels: [], rankIds: [], search: "", regex: false, allocationIds: [] });
      } else await toLine(line.id);
    } catch (error) {
      say({ text: messageOf(error), kind: "failed" });
    }
  };
  const toStart = () => {
    setFollow(false);
    setTarget(null);
    void log.jump({ after: 0 });
  };
  const toEnd = () => {
    setTarget(null);
    setFollow(true);
    void log.jump({});
  };
  useActions([
    { id: "log-find", title: "Find in the log", keys: "/", group: "Log", run: () => input.current?.focus() },
    { id: "log-error", title: "First error", keys: "e", group: "Log", run: () => void firstError() },
    { id: "log-start", title: "Start of the log", keys: "Home", group: "Log", run: toStart },
    { id: "log-end", title: "End of the log, and follow", keys: "End", group: "Log", run: toEnd },
  ]);
  const extent = log.extent;
  return (
    <section className={styles.log} aria-label="Log">
      <LogControls filter={filter} change={narrow} ranks={ranks} attempts={attempts} inputRef={input} />
      <div className={layout.row}>
        <Button
          onClick={() => void firstError()}
          why={extent && extent.errors === 0 ? "no error in this log" : undefined}
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
        <span className={clsx(typography.soft, typography.number)}>
          {extent ? `${grouped(extent.count)} lines` : ""}
        </span>
        <a className={clsx(buttonStyles.button, buttonStyles.quiet)} href={downloadUrl(trialId)} download>
          Download
        </a>
      </div>
      {log.problem && (
        <p className={typography.problem} role="alert">
          {log.problem}
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
          target={target}
          follow={follow && log.window.atEnd}
          onScrolledUp={() => setFollow(false)}
          older={log.older}
          newer={log.newer}
          onChoose={setChosen}
        />
      )}
      {chosen && <LineDialog line={chosen} onClose={() => setChosen(null)} />}
    </section>
  );
}
