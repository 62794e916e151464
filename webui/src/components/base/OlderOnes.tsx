import type { UseInfiniteQueryResult } from "@tanstack/react-query";
import { Button } from "./Button";

/** The next page of a list that is shown newest first; nothing where there is none. */
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
