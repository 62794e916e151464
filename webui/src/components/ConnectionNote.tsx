import { clsx } from "clsx";
import { useStreamState } from "@/live/LiveProvider";
import { duration } from "@/format/duration";
import { Button } from "./base/Button";
import styles from "./ConnectionNote.module.css";

/** Shown while the page cannot know whether its data is current. */
export function ConnectionNote() {
  const { connection, since, outdated } = useStreamState();
  if (connection === "lost") return <LostNote since={since ?? Date.now()} />;
  if (outdated) {
    return (
      <div className={clsx(styles.note, styles.outdated)} role="status">
        <span>The cluster has a newer page than this one.</span>
        <Button onClick={() => window.location.reload()}>Reload</Button>
      </div>
    );
  }
  return null;
}

function LostNote({ since }: { since: number }) {
  return (
    <div className={clsx(styles.note, styles.lost)} role="status" data-testid="connection-lost">
      No connection to the master{Date.now() - since > 5_000 ? ` for ${duration(Date.now() - since)}` : ""}. What you
      see may be out of date. Reconnecting…
    </div>
  );
}
