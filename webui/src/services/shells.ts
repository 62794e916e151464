import { queryOptions } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import type { components } from "@/api/schema";

export type ShellTask = components["schemas"]["Shell"];

/** A shell that was started as a task of its own. */
export const shellQuery = (id: string) =>
  queryOptions({
    queryKey: ["cluster", "shell", id],
    queryFn: async () =>
      (await got(api.GET("/api/v1/shells/{shell_id}", { params: { path: { shell_id: id } } }))).shell,
  });

export async function killShell(id: string): Promise<void> {
  await got(api.POST("/api/v1/shells/{shell_id}/kill", { params: { path: { shell_id: id } } }));
}
