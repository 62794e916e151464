import { clsx } from "clsx";
import { useState } from "react";
import { Link } from "react-router";
import { useSession } from "@/app/session";
import { Button } from "@/components/base/Button";
import { duration } from "@/format/duration";
import { escapeControl } from "@/format/escapeControl";
import { useApiMutation } from "@/hooks/useApiMutation";
import { useNow } from "@/hooks/useNow";
import { enableAgent, enableSlot, type OverviewAgent, type OverviewSlot } from "@/services/cluster";
import { DisableDialog } from "./DisableDialog";
import { Icon } from "@/components/base/Icon";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./AgentCard.module.css";

/** Enables or disables one slot, or the whole agent if no slot is given. */
interface Change {
  slotId?: number;
  enabled: boolean;
  drain: boolean;
}

/** One machine: its slots as a grid, each with who holds it. */
export function AgentCard({ agent }: { agent: OverviewAgent }) {
  const { user } = useSession();
  const [disabling, setDisabling] = useState(false);
  const { mutate: change, isPending: busy } = useApiMutation({
    mutationFn: ({ slotId, enabled, drain }: Change) =>
      slotId === undefined ? enableAgent(agent.id, enabled, drain) : enableSlot(agent.id, slotId, enabled, drain),
    invalidates: [["cluster"]],
  });
  const why = user.admin ? undefined : "Only an admin can do this";
  const state = agent.connected
    ? agent.enabled
      ? "connected"
      : agent.draining
        ? "draining"
        : "disabled"
    : "not connected";
  return (
    <section className={layout.card} aria-label={`Agent ${agent.id}`}>
      <div className={layout.row}>
        <h2 className={layout.grow}>
          {escapeControl(agent.id)}{" "}
          <span className={clsx(typography.tag, !agent.connected && styles.down)}>
            <Icon name={agent.connected ? "dot" : "close"} /> {state}
          </span>
        </h2>
        {agent.enabled ? (
          <>
            <Button
              why={why}
              busy={busy}
              onClick={() => change({ enabled: false, drain: true })}
              title="Starts no new trials; running trials continue"
            >
              Drain
            </Button>
            <Button
              kind="danger"
              why={why}
              busy={busy}
              onClick={() => setDisabling(true)}
              title="Starts no new trials and kills running ones"
            >
              Disable…
            </Button>
          </>
        ) : (
          <Button why={why} busy={busy} onClick={() => change({ enabled: true, drain: false })}>
            Enable
          </Button>
        )}
      </div>
      <p className={clsx(typography.soft, typography.small)}>
        {escapeControl(agent.hostname)}, pool {escapeControl(agent.pool)}, {agent.version}
      </p>
      <ul className={styles.slots}>
        {agent.slots.map((slot) => (
          <SlotBox key={slot.id} agent={agent} slot={slot} why={why} change={change} />
        ))}
      </ul>
      {disabling && (
        <DisableDialog
          what={`agent ${agent.id}`}
          slots={agent.slots}
          onClose={() => setDisabling(false)}
          disable={() => change({ enabled: false, drain: false })}
          drain={() => change({ enabled: false, drain: true })}
        />
      )}
    </section>
  );
}

const SLOT_CLASSES = { "in use": styles.inUse, offline: styles.gone, free: styles.free, disabled: styles.off };

interface SlotProps {
  agent: OverviewAgent;
  slot: OverviewSlot;
  why: string | undefined;
  change: (change: Change) => void;
}

function SlotBox({ agent, slot, why, change }: SlotProps) {
  const now = useNow();
  const { held } = slot;
  const [disabling, setDisabling] = useState(false);
  const word = held ? "in use" : !agent.connected ? "offline" : slot.enabled && agent.enabled ? "free" : "disabled";
  return (
    <li className={clsx(styles.slot, SLOT_CLASSES[word])} data-slot={slot.id}>
      <div className={layout.row}>
        <strong>slot {slot.id}</strong>{" "}
        <span className={clsx(typography.small, typography.soft, layout.grow)} title={slot.brand}>
          {slot.type}
        </span>
        <Button
          kind="quiet"
          why={why}
          aria-label={`${slot.enabled ? "Disable" : "Enable"} slot ${slot.id} of ${agent.id}`}
          onClick={() =>
            slot.enabled && held
              ? setDisabling(true)
              : change({ slotId: slot.id, enabled: !slot.enabled, drain: false })
          }
        >
          {slot.enabled ? "Disable" : "Enable"}
        </Button>
      </div>
      {held ? (
        <>
          <Link to={`/experiments/${held.experimentId}/trials/${held.trialId}`}>
            {escapeControl(held.experimentName)}
          </Link>
          <span className={clsx(typography.small, typography.soft)}>
            trial {held.trialId}, rank {held.rank}, {duration(now - Date.parse(held.since))}
          </span>
        </>
      ) : (
        <span className={typography.soft}>{word}</span>
      )}
      {disabling && (
        <DisableDialog
          what={`slot ${slot.id} of ${agent.id}`}
          slots={[slot]}
          onClose={() => setDisabling(false)}
          disable={() => change({ slotId: slot.id, enabled: false, drain: false })}
          drain={() => change({ slotId: slot.id, enabled: false, drain: true })}
        />
      )}
    </li>
  );
}
