import { queryOptions } from "@tanstack/react-query";
import { api, got } from "@/api/client";

/** A saved list: everything that its address contains. */
export interface SavedView {
  name: string;
  /** The query of the address, without the question mark. */
  search: string;
}

const VIEWS = { storagePath: "detent/home", key: "views" };

export const savedViewsQuery = queryOptions({
  queryKey: ["settings", "views"],
  queryFn: async () => {
    const { settings } = await got(api.GET("/api/v1/users/setting"));
    const found = settings.find((each) => each.key === VIEWS.key && each.storagePath === VIEWS.storagePath);
    return readViews(found?.value ?? "");
  },
});

export async function saveViews(views: readonly SavedView[]): Promise<void> {
  await got(api.POST("/api/v1/users/setting", { body: { settings: [{ ...VIEWS, value: JSON.stringify(views) }] } }));
}

/** Parses the stored views, whatever version of the page stored them. */
export function readViews(text: string): SavedView[] {
  try {
    const value: unknown = JSON.parse(text);
    if (!Array.isArray(value)) return [];
    return value.filter(
      (each: unknown): each is SavedView =>
        typeof each === "object" &&
        each !== null &&
        "name" in each &&
        "search" in each &&
        typeof each.name === "string" &&
        typeof each.search === "string",
    );
  } catch {
    return [];
  }
}
