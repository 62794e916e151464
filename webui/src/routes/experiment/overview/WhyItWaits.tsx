import { useQuery } from "@tanstack/react-query";
import { duration } from "@/format/duration";
import { escapeControl } from "@/format/escapeControl";
import { type StartingChanges, type WaitBlocker, whyQuery } from "@/services/experiments";
import layout from "@/styles/layout.module.css";

const DISPLAY_LIMIT = 6;
const IN_THE_WAY: Record<WaitBlocker["why"], string> = {
  limit: "counts for the same limit",
  ahead: "comes first and waits for the same slots",
  leaving: "is saving and leaves its slots to it",
  running: "holds slots that it could use",
};

/** The blockers of a waiting trial, its expected start, and the single changes that would start it now. */
export function WhyItWaits({ experimentId }: { experimentId: number }) {
  const { data } = useQuery(whyQuery(experimentId));
  const first = data?.first;
  if (!first) return null;
  const changes = changesInWords(first.changes, first.slots);
  const more = first.blockers.length - DISPLAY_LIMIT;
  return (
    <section className={layout.card} aria-label="Why it waits">
      <h2>Why it waits</h2>
      <p>
        {first.ahead === 0 ? "First" : `${first.ahead} ahead`} in the queue of pool {first.pool}, priority{" "}
        {first.priority}.{" "}
        {first.startsInSeconds === null
          ? `Expected start unknown: ${first.unknown}.`
          : `Expected to start in about ${duration(first.startsInSeconds * 1000)}.`}
      </p>
      {first.blockers.length > 0 && (
        <ul>
          {first.blockers.slice(0, DISPLAY_LIMIT).map((each) => (
            <li key={each.allocationId}>
              {escapeControl(each.name)} {IN_THE_WAY[each.why]}
              {each.secondsLeft !== null && `, for about ${duration(each.secondsLeft * 1000)} more`}
            </li>
          ))}
          {more > 0 && <li>{more} more</li>}
        </ul>
      )}
      <h3>What would start it now</h3>
      {changes.length === 0 ? (
        <p>No single change.</p>
      ) : (
        <ul>
          {changes.map((each) => (
            <li key={each}>{each}</li>
          ))}
        </ul>
      )}
    </section>
  );
}

function changesInWords(changes: StartingChanges, slots: number): string[] {
  const found: string[] = [];
  if (changes.slots !== null)
    found.push(`${changes.slots} ${changes.slots === 1 ? "slot" : "slots"} instead of ${slots}`);
  if (changes.priority !== null) found.push(`Priority ${changes.priority}`);
  if (changes.maxSlots !== null) found.push(`max_slots ${changes.maxSlots}`);
  found.push(...changes.pools.map((pool) => `Pool ${pool}`));
  found.push(...changes.agents.map((agent) => `Enabling agent ${agent}`));
  found.push(...changes.slotIds.map(({ agentId, slotId }) => `Enabling slot ${slotId} of agent ${agentId}`));
  found.push(...changes.pausedJobs.map(({ name }) => `Pausing ${escapeControl(name)}, once it has left`));
  return found;
}
