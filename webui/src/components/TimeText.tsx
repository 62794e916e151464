import { usePreferences, zone } from "@/browser/preferences";
import { ago } from "@/format/duration";
import { exact } from "@/format/dateTime";
import { useNow } from "@/hooks/useNow";

/** A relative time, with the exact time on hover. */
export function TimeText({ at }: { at: string | null | undefined }) {
  const now = useNow();
  const timeZone = zone(usePreferences());
  if (!at) return null;
  const then = Date.parse(at);
  return (
    <time dateTime={at} title={exact(then, timeZone)}>
      {ago(then, now, timeZone)}
    </time>
  );
}

/** An exact time. */
export function ExactTime({ at }: { at: string | null | undefined }) {
  const timeZone = zone(usePreferences());
  if (!at) return null;
  return <time dateTime={at}>{exact(Date.parse(at), timeZone)}</time>;
}
