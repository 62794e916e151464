import { queryOptions } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import type { components } from "@/api/schema";

export type User = components["schemas"]["User"];

export const usersQuery = queryOptions({
  queryKey: ["users"],
  queryFn: async () => (await got(api.GET("/api/v1/users"))).users,
});

export async function addUser(username: string, password: string, admin: boolean): Promise<void> {
  const user = { username, admin, active: true, displayName: null };
  await got(api.POST("/api/v1/users", { body: { user, password, isHashed: false } }));
}

export async function changeUser(
  id: number,
  change: { active?: boolean; admin?: boolean; displayName?: string; password?: string },
): Promise<void> {
  await got(
    api.PATCH("/api/v1/users/{user_id}", {
      params: { path: { user_id: id } },
      body: { ...change, isHashed: false } as never,
    }),
  );
}
