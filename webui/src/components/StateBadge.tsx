import { stateLook } from "@/format/states";

/** A state as a sign, a word and a colour: never by colour alone. */
export function StateBadge({ state, title }: { state: string; title?: string }) {
  const look = stateLook(state);
  return (
    <span className={`state state-${look.tone}`} title={title}>
      <span aria-hidden="true">{look.sign}</span> {look.word}
    </span>
  );
}
