import { clsx } from "clsx";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useCallback, useEffect } from "react";
import { Link, useSearchParams } from "react-router";
import { EmptyState } from "@/components/base/EmptyState";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { OlderOnes } from "@/components/base/OlderOnes";
import { ExactTime } from "@/components/TimeText";
import { escapeControl } from "@/format/escapeControl";
import { grouped } from "@/format/number";
import { useLateText } from "@/hooks/useLateText";
import { usePageTitle } from "@/hooks/usePageTitle";
import { eventsQuery, type ListedEvent } from "@/services/events";
import { usersQuery } from "@/services/users";
import { KINDS, TARGET_TYPES } from "./events/kinds";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

const PAUSE_MS = 300;
/** Maximum number of pages of a search that are fetched for enough events. Older ones are fetched on demand. */
const MAX_PAGES = 20;
const ENOUGH = 50;

/** The page of all events, newest first. */
export function Component() {
  usePageTitle("Events");
  const [params, setParams] = useSearchParams();
  const of = (name: string) => params.get(name) ?? undefined;
  const text = params.get("text") ?? "";
  const list = useInfiniteQuery(
    eventsQuery({
      actor: of("actor"),
      kind: of("kind"),
      targetType: of("targetType"),
      targetId: of("targetId"),
      search: text.trim() || undefined,
    }),
  );
  const { data: users } = useQuery(usersQuery);
  const { data, error, hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = list;
  const set = useCallback(
    (name: string, value: string) =>
      setParams(
        (now) => {
          const next = new URLSearchParams(now);
          if (value) next.set(name, value);
          else next.delete(name);
          return next;
        },
        { replace: true },
      ),
    [setParams],
  );
  const events = data?.pages.flatMap((page) => page.events) ?? [];
  const pageCount = data?.pages.length ?? 0;
  // After searching many events without a match, the master returns fewer than a page holds.
  const goesOn =
    text.trim() !== "" &&
    hasNextPage &&
    !isFetchingNextPage &&
    !isFetchNextPageError &&
    events.length < ENOUGH &&
    pageCount < MAX_PAGES;
  useEffect(() => {
    if (goesOn) void fetchNextPage();
    // A page without matches fetches the next one.
  }, [goesOn, pageCount, fetchNextPage]);
  const names = ["system", ...(users ?? []).map(({ username }) => username)];
  return (
    <main>
      <h1>Events</h1>
      <div className={layout.row} role="group" aria-label="Event filters">
        <Search text={text} onChange={set} />
        <Choice
          title="Who"
          value={of("actor")}
          onChange={(value) => set("actor", value)}
          choices={new Map(names.map((name) => [name, name]))}
        />
        <Choice title="What" value={of("kind")} onChange={(value) => set("kind", value)} choices={KINDS} />
        <Choice
          title="Target"
          value={of("targetType")}
          onChange={(value) => set("targetType", value)}
          choices={TARGET_TYPES}
        />
        <label>
          <span className={typography.soft}>ID</span>
          <input
            value={params.get("targetId") ?? ""}
            onChange={(event) => set("targetId", event.target.value.trim())}
            size={8}
            spellCheck={false}
          />
        </label>
      </div>
      {error && !data ? (
        <Failure error={error} retry={() => void list.refetch()} />
      ) : !data || (events.length === 0 && goesOn) ? (
        <Loading what="the events" />
      ) : events.length === 0 ? (
        <EmptyState title={hasNextPage ? "No match among the newest events" : "No matching events"} />
      ) : (
        <div className={layout.scrollX}>
          <table className={clsx(layout.table, layout.cardTable)}>
            <thead>
              <tr>
                <th>When</th>
                <th>Who</th>
                <th>What</th>
                <th>Target</th>
              </tr>
            </thead>
            <tbody>
              {events.map((event) => (
                <tr key={event.id}>
                  <td data-label="When">
                    <ExactTime at={event.time} />
                  </td>
                  <td data-label="Who">
                    <button
                      type="button"
                      className={layout.sortButton}
                      onClick={() => set("actor", event.actor)}
                      title={`Only by ${event.actor}`}
                    >
                      {escapeControl(event.actor)}
                    </button>
                  </td>
                  <td data-label="What">{escapeControl(event.text)}</td>
                  <td data-label="Target">
                    <Target event={event} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {text !== "" && data && events.length > 0 && (
        <p className={typography.hint} role="status">
          {hasNextPage ? `The newest ${grouped(events.length)} matches` : countOf(events.length)}
        </p>
      )}
      <OlderOnes list={list} />
    </main>
  );
}

function countOf(matches: number): string {
  return matches === 1 ? "1 match" : `${grouped(matches)} matches`;
}

function Search({ text, onChange }: { text: string; onChange: (name: string, value: string) => void }) {
  const search = useCallback((value: string) => onChange("text", value), [onChange]);
  const [typed, setTyped, send] = useLateText(text, search, PAUSE_MS);
  return (
    <input
      type="search"
      className={layout.grow}
      value={typed}
      onChange={(event) => setTyped(event.target.value)}
      onBlur={send}
      placeholder="Find events"
      aria-label="Find events"
      spellCheck={false}
    />
  );
}

interface ChoiceProps {
  title: string;
  value: string | undefined;
  onChange: (value: string) => void;
  choices: ReadonlyMap<string, string>;
}

function Choice({ title, value = "", onChange, choices }: ChoiceProps) {
  return (
    <label>
      <span className={typography.soft}>{title}</span>
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">all</option>
        {[...choices].map(([choice, name]) => (
          <option key={choice} value={choice}>
            {escapeControl(name)}
          </option>
        ))}
        {value !== "" && !choices.has(value) && <option value={value}>{escapeControl(value)}</option>}
      </select>
    </label>
  );
}

function Target({ event }: { event: ListedEvent }) {
  const text = escapeControl(`${event.targetType} ${event.targetId}`);
  if (event.targetType === "experiment") return <Link to={`/experiments/${event.targetId}`}>{text}</Link>;
  if (event.targetType === "trial") return <Link to={`/trials/${event.targetId}`}>{text}</Link>;
  return <>{text}</>;
}
