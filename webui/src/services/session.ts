import { queryOptions } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import type { components } from "@/api/schema";
import { sessionEnded } from "@/api/sessionEnded";
import { setSignIn } from "@/browser/signIn";
import { heardTime } from "@/live/serverClock";

export type Session = components["schemas"]["PageSession"];

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async (): Promise<Session> => {
    const session = await got(api.GET("/detent/session"));
    heardTime(Date.parse(session.now));
    return session;
  },
  retry: false,
  staleTime: Infinity,
});

export async function signIn(body: { token: string } | { username: string; password: string }): Promise<void> {
  setSignIn((await got(api.POST("/detent/sign-in", { body }))).sessionId);
}

export async function signOut(): Promise<void> {
  await got(api.POST("/detent/sign-out"));
  sessionEnded.tell();
}
