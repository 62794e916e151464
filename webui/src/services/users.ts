import { queryOptions } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import type { components } from "@/api/schema";

export type User = components["schemas"]["User"];

export const usersQuery = queryOptions({
  queryKey: ["users"],
  queryFn: async () => (await got(api.GET("/api/v1/users"))).users,
});

export interface NewUser {
  username: string;
  password: string;
  admin: boolean;
}

export interface UserChange {
  active?: boolean;
  admin?: boolean;
  displayName?: string;
  password?: string;
}

export async function addUser({ username, password, admin }: NewUser): Promise<void> {
  const user = { username, admin, active: true, displayName: null };
  await got(api.POST("/api/v1/users", { body: { user, password, isHashed: false } }));
}

export async function changeUser(id: number, change: UserChange): Promise<void> {
  const body = { ...change, isHashed: false };
  await got(api.PATCH("/api/v1/users/{user_id}", { params: { path: { user_id: id } }, body }));
}
