/** Kinds of events in the API, with their displayed words. */
export const KINDS: ReadonlyMap<string, string> = new Map([
  ["created", "created"],
  ["changed", "changed"],
  ["moved", "changed state"],
  ["archived", "archived"],
  ["unarchived", "unarchived"],
  ["requested", "requested slots"],
  ["placed", "placed on agents"],
  ["ready", "started running"],
  ["preemption_requested", "asked to save and exit"],
  ["preemption_acknowledged", "saves and exits"],
  ["kill_requested", "killed"],
  ["ended", "ended"],
  ["reported", "saved a checkpoint"],
  ["outputs_kept", "stored outputs"],
  ["validated", "validated"],
  ["logged_in", "signed in"],
  ["link_made", "created a sign-in link"],
]);

export const TARGET_TYPES: ReadonlyMap<string, string> = new Map(
  ["experiment", "trial", "allocation", "checkpoint", "agent", "user"].map((type) => [type, type]),
);
