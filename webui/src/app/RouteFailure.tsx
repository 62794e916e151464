import { isRouteErrorResponse, useRouteError } from "react-router";
import { messageOf } from "@/api/problem";
import { Button } from "@/components/base/Button";
import failureStyles from "@/components/base/Failure.module.css";

/** A part of the page could not be loaded or drawn. The rest stays usable. */
export function RouteFailure() {
  const error = useRouteError();
  const text = isRouteErrorResponse(error) ? error.statusText : messageOf(error);
  // After an upgrade of the master the parts of an older page are gone.
  const isOldPart = /dynamically imported module|Importing a module script/.test(text);
  return (
    <main className={failureStyles.failure} role="alert">
      <h1>{isOldPart ? "The cluster has a newer page than this one" : "This part of the page failed"}</h1>
      {!isOldPart && <p>{text}</p>}
      <Button kind="primary" onClick={() => window.location.reload()}>
        Reload
      </Button>
    </main>
  );
}
