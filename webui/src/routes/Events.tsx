import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useSearchParams } from "react-router";
import { EmptyState } from "@/components/base/EmptyState";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { OlderOnes } from "@/components/base/OlderOnes";
import { ExactTime } from "@/components/TimeText";
import { escapeControl } from "@/format/escapeControl";
import { usePageTitle } from "@/hooks/usePageTitle";
import { eventsQuery, type ListedEvent } from "@/services/events";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

const FIELDS = [
  { name: "actor", title: "Who" },
  { name: "kind", title: "What" },
  { name: "targetType", title: "Target type" },
  { name: "targetId", title: "Target ID" },
] as const;

/** Everything that happened, newest first. */
export function Component() {
  usePageTitle("Events");
  const [params, setParams] = useSearchParams();
  const filter = Object.fromEntries(FIELDS.map(({ name }) => [name, params.get(name) ?? undefined]));
  const list = useInfiniteQuery(eventsQuery(filter));
  const { data, error } = list;
  const set = (name: string, value: string) =>
    setParams(
      (now) => {
        const next = new URLSearchParams(now);
        if (value) next.set(name, value);
        else next.delete(name);
        return next;
      },
      { replace: true },
    );
  const events = data?.pages.flatMap((page) => page.events) ?? [];
  return (
    <main>
      <h1>Events</h1>
      <div className={layout.row} role="group" aria-label="Event filters">
        {FIELDS.map(({ name, title }) => (
          <label key={name}>
            <span className={typography.soft}>{title}</span>
            <input
              value={params.get(name) ?? ""}
              onChange={(event) => set(name, event.target.value)}
              size={12}
              spellCheck={false}
            />
          </label>
        ))}
      </div>
      {error && !data ? (
        <Failure error={error} retry={() => void list.refetch()} />
      ) : !data ? (
        <Loading what="the events" />
      ) : events.length === 0 ? (
        <EmptyState
          title="No matching events"
          command="det experiment create examples/digits/const.yaml examples/digits"
        />
      ) : (
        <div className={layout.scrollX}>
          <table className={layout.table}>
            <thead>
              <tr>
                <th>When</th>
                <th>Who</th>
                <th>What</th>
                <th>To</th>
              </tr>
            </thead>
            <tbody>
              {events.map((event) => (
                <tr key={event.id}>
                  <td>
                    <ExactTime at={event.time} />
                  </td>
                  <td>
                    <button
                      type="button"
                      className={layout.sortButton}
                      onClick={() => set("actor", event.actor)}
                      title={`Only by ${event.actor}`}
                    >
                      {escapeControl(event.actor)}
                    </button>
                  </td>
                  <td>{escapeControl(event.text)}</td>
                  <td>
                    <Target event={event} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <OlderOnes list={list} />
    </main>
  );
}

function Target({ event }: { event: ListedEvent }) {
  const text = escapeControl(`${event.targetType} ${event.targetId}`);
  if (event.targetType === "experiment") return <Link to={`/experiments/${event.targetId}`}>{text}</Link>;
  if (event.targetType === "trial") return <Link to={`/trials/${event.targetId}`}>{text}</Link>;
  return <>{text}</>;
}
