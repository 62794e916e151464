import { exact } from "@/format/dateTime";
import { escapeControl } from "@/format/escapeControl";
import type { OverviewPool } from "@/services/cluster";
import typography from "@/styles/typography.module.css";

/** The pools whose agents a provider starts and ends, with its bounds and its present activity. */
export function Providers({ pools }: { pools: OverviewPool[] }) {
  const provided = pools.filter((pool) => pool.provider);
  if (provided.length === 0) return null;
  return (
    <ul aria-label="Pools with a provider">
      {provided.map((pool) => (
        <li key={pool.name}>
          Pool {pool.name}: {pool.provider} provider, {pool.minAgents} to {pool.maxAgents} agents; {activity(pool)}
          {pool.account && `; its agents run as, and are charged to, ${escapeControl(pool.account)}`}
          {pool.waiting && (
            <div className={typography.small}>
              {escapeControl(pool.waiting)}
              {pool.startEstimate && `; start estimated for ${exact(Date.parse(pool.startEstimate))}`}
            </div>
          )}
          {pool.problem && (
            <div className={typography.small} role="alert">
              {escapeControl(pool.problem)}
            </div>
          )}
        </li>
      ))}
    </ul>
  );
}

function activity({ running, starting, ending }: OverviewPool): string {
  const parts = [`${running} running`];
  if (starting) parts.push(`${starting} starting`);
  if (ending) parts.push(`${ending} ending`);
  return parts.join(", ");
}
