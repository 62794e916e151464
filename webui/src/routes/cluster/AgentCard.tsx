import { clsx } from "clsx";
import { useState } from "react";
import { Link } from "react-router";
import { useSession } from "@/hooks/useSession";
import { Button } from "@/components/base/Button";
import { Switch } from "@/components/base/Switch";
import { StateBadge } from "@/components/StateBadge";
import { duration } from "@/format/duration";
import { escapeControl } from "@/format/escapeControl";
import { useApiMutation } from "@/hooks/useApiMutation";
import { useNow } from "@/hooks/useNow";
import { enableAgent, enableSlot, type OverviewAgent, type OverviewSlot } from "@/services/cluster";
import { DisableDialog } from "./DisableDialog";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./AgentCard.module.css";

/** Enables or disables one slot, or the whole agent if no slot is given. */
interface Change {
  slotId?: number;
  enabled: boolean;
  drain: boolean;
}

/** One machine: its slots as a grid, each with its task. */
export function AgentCard({ agent }: { agent: OverviewAgent }) {
  const { user } = useSession();
  const [disabling, setDisabling] = useState(false);
  const { mutate: change, isPending: busy } = useApiMutation({
    mutationFn: ({ slotId, enabled, drain }: Change) =>
      slotId === undefined ? enableAgent(agent.id, enabled, drain) : enableSlot(agent.id, slotId, enabled, drain),
    invalidates: [["cluster"]],
  });
  const why = user.admin ? undefined : "Only an admin can do this";
  const state = stateOf(agent);
  const inUse = agent.slots.filter(({ held }) => held).length;
  return (
    <section className={layout.card} aria-label={`Agent ${agent.id}`}>
      <div className={layout.row}>
        <h2 className={layout.grow}>
          {escapeControl(agent.id)}{" "}
          <span className={styles.badge}>
            <StateBadge state={state} />
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
        {agent.origin && `, ${escapeControl(agent.origin)}`}
      </p>
      {agent.leavesAt && <Departure at={agent.leavesAt} why={agent.leavesWhy} leaving={agent.leaving} />}
      {agent.warning && <p className={typography.warning}>{escapeControl(agent.warning)}</p>}
      <div className={layout.row}>
        <span className={styles.use} role="img" aria-label={`${inUse} of ${agent.slots.length} slots in use`}>
          {agent.slots.map(({ id, held }) => (
            <span key={id} className={clsx(styles.part, held && styles.filled)} />
          ))}
        </span>
        <span className={typography.small} aria-hidden="true">
          {inUse} of {agent.slots.length} slots in use
        </span>
      </div>
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

function stateOf({ connected, leaving, enabled, draining }: OverviewAgent): string {
  if (!connected) return "NOT_CONNECTED";
  if (leaving) return "LEAVING";
  return enabled ? "CONNECTED" : draining ? "DRAINING" : "DISABLED";
}

function Departure({ at, why, leaving }: { at: string; why: string; leaving: boolean }) {
  const now = useNow();
  return (
    <p className={leaving ? typography.warning : clsx(typography.soft, typography.small)}>
      Leaves in {duration(Date.parse(at) - now)}: {escapeControl(why)}
    </p>
  );
}

const SLOT_CLASSES = {
  IN_USE: styles.inUse,
  NOT_CONNECTED: styles.gone,
  FREE: styles.free,
  DRAINING: styles.off,
  DISABLED: styles.off,
  OCCUPIED: styles.off,
  UNHEALTHY: styles.gone,
};

function slotState(agent: OverviewAgent, slot: OverviewSlot): keyof typeof SLOT_CLASSES {
  if (!agent.connected) return "NOT_CONNECTED";
  const isEnabled = slot.enabled && agent.enabled;
  if (slot.status === "unhealthy") return "UNHEALTHY";
  if (slot.held) return isEnabled ? "IN_USE" : "DRAINING";
  if (!isEnabled) return "DISABLED";
  return slot.status === "occupied" ? "OCCUPIED" : "FREE";
}

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
  const state = slotState(agent, slot);
  return (
    <li className={clsx(styles.slot, SLOT_CLASSES[state])} data-slot={slot.id}>
      <div className={layout.row}>
        <strong>slot {slot.id}</strong>{" "}
        <span className={clsx(typography.small, typography.soft, layout.grow)} title={slot.brand}>
          {slot.type}
        </span>
        <span className={styles.badge}>
          <StateBadge state={state} />
        </span>
      </div>
      {held ? (
        <>
          {held.trialId === null ? (
            <span>{escapeControl(held.name)}</span>
          ) : (
            <Link to={`/experiments/${held.experimentId}/trials/${held.trialId}`}>{escapeControl(held.name)}</Link>
          )}
          <span className={clsx(typography.small, typography.soft)}>
            {held.trialId === null ? null : `trial ${held.trialId}, rank ${held.rank}, `}
            {duration(now - Date.parse(held.since))}
          </span>
        </>
      ) : null}
      {slot.reason && <span className={typography.small}>{escapeControl(slot.reason)}</span>}
      <Switch
        label="Enabled"
        name={`Slot ${slot.id} of ${agent.id}, enabled`}
        on={slot.enabled}
        why={why}
        onChange={() =>
          slot.enabled && held ? setDisabling(true) : change({ slotId: slot.id, enabled: !slot.enabled, drain: false })
        }
      />
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
