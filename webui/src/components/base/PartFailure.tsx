import { Button } from "./Button";
import { useStreamState } from "@/live/LiveProvider";
import failureStyles from "./Failure.module.css";

/** Shown when a lazily loaded part of the page cannot be fetched. The rest of the page stays. */
export function PartFailure({ retry }: { retry: () => void }) {
  const { connection, outdated } = useStreamState();
  return (
    <div className={failureStyles.failure} role="alert">
      <p>
        {outdated
          ? "The cluster has a newer page than this one."
          : connection === "lost"
            ? "This part of the page appears when the master answers again."
            : "This part of the page could not be loaded."}
      </p>
      {outdated ? (
        // The chunks of an older build no longer exist.
        <Button onClick={() => window.location.reload()}>Reload</Button>
      ) : (
        <Button onClick={retry}>Try again</Button>
      )}
    </div>
  );
}
