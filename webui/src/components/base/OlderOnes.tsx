import type { UseInfiniteQueryResult } from "@tanstack/react-query";
import { Button } from "./Button";

/** A button that loads the next page of a list with the newest first; absent after the last page. */
export function OlderOnes({
  list,
}: {
  list: Pick<UseInfiniteQueryResult, "hasNextPage" | "isFetchingNextPage" | "fetchNextPage">;
}) {
  if (!list.hasNextPage) return null;
  return (
    <Button busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
      Load older
    </Button>
  );
}
