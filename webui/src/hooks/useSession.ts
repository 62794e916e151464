import { createContext, useContext } from "react";
import type { Session } from "@/services/session";

/** The session of the signed-in user, which `SessionGate` provides. */
export const CurrentSession = createContext<Session | null>(null);

/** Returns the session of the signed-in user. */
export function useSession(): Session {
  const session = useContext(CurrentSession);
  if (!session) throw new Error("asked for a session outside of one");
  return session;
}
