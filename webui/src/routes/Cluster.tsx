import { useQuery } from "@tanstack/react-query";
import { EmptyState } from "@/components/base/EmptyState";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { usePageTitle } from "@/hooks/usePageTitle";
import { overviewQuery } from "@/services/cluster";
import { AgentCard } from "./cluster/AgentCard";
import { Gantt } from "./cluster/Gantt";
import { Providers } from "./cluster/Providers";
import { Queue } from "./cluster/Queue";
import { Usage } from "./cluster/Usage";
import layout from "@/styles/layout.module.css";

/** The page of the cluster: machines and slots, their history, and the queue with its reasons. */
export function Component() {
  usePageTitle("Cluster");
  const { data, error, refetch } = useQuery(overviewQuery);
  if (error && !data) {
    return (
      <main>
        <Failure error={error} retry={() => void refetch()} />
      </main>
    );
  }
  if (!data) return <Loading what="the cluster" />;
  const slots = data.agents.flatMap((agent) => agent.slots);
  const held = slots.filter((slot) => slot.held).length;
  return (
    <main>
      <div className={layout.pageHead}>
        <h1 className={layout.grow}>Cluster</h1>
        <span role="status">
          {held} of {slots.length} slots in use, {data.agents.filter((agent) => agent.connected).length} of{" "}
          {data.agents.length} agents connected
        </span>
      </div>
      <Providers pools={data.pools} />
      {data.agents.length === 0 && data.pools.some((pool) => pool.provider) ? (
        <EmptyState title="No agent now">Agents start when work waits for them.</EmptyState>
      ) : data.agents.length === 0 ? (
        <EmptyState title="No agent yet" command="det-agent --master http://THIS-MASTER:8080 --token-file agent-token">
          An agent offers the slots of its machine. det up starts one together with the master.
        </EmptyState>
      ) : (
        <div className={layout.cards}>
          {data.agents.map((agent) => (
            <AgentCard key={agent.id} agent={agent} />
          ))}
        </div>
      )}
      <Queue entries={data.queue} />
      <Gantt agents={data.agents} />
      <Usage />
    </main>
  );
}
