import createClient, { type Middleware } from "openapi-fetch";
import { masterUrl } from "@/browser/base";
import { signInId } from "@/browser/signIn";
import { problemOf } from "./problem";
import type { paths } from "./schema";
import { sessionEnded } from "./sessionEnded";

/** Header of every request, in addition to the cookie. No other site can send it. */
const OWN: Record<string, string> = { "X-Detent-Page": "1" };

const signIn: Middleware = {
  onRequest({ request }) {
    request.headers.set("X-Detent-Session", signInId());
    return request;
  },
};

const refusals: Middleware = {
  async onResponse({ response, schemaPath }) {
    if (response.ok) return undefined;
    const body: unknown = await response.json().catch(() => null);
    const problem = problemOf(response.status, body);
    if (problem.isSignedOut && schemaPath !== "/detent/sign-in") sessionEnded.tell();
    throw problem;
  },
  onError() {
    return problemOf(0, null);
  },
};

export const api = createClient<paths>({
  baseUrl: window.location.origin + masterUrl(""),
  headers: OWN,
  credentials: "same-origin",
  // Looked up at each call, since tests replace it.
  fetch: (request) => globalThis.fetch(request),
});
api.use(signIn, refusals);

/** Returns the body of an answer. The middleware throws if there is none. */
export async function got<T>(call: Promise<{ data?: T }>): Promise<T> {
  const { data } = await call;
  return data as T;
}
