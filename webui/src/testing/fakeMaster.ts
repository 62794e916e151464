import { vi } from "vitest";

/** A request of the page. */
export interface Asked {
  /** Method and path, such as `POST /detent/series`. */
  line: string;
  query: URLSearchParams;
  body: unknown;
}

/** A body, or a function that returns one. A thrown `Refusal` is returned with its status. */
export type Answer = object | ((asked: Asked) => unknown);

export class Refusal {
  constructor(
    readonly status: number,
    readonly words: string,
    readonly more: object = {},
  ) {}
}

export interface FakeMaster {
  asked: Asked[];
  /** May be changed during a test. */
  answers: Record<string, Answer>;
  /** Returns the requests with this line, in order. */
  of: (line: string) => Asked[];
}

/** Returns an answer that is given later. */
export function held<T>(): { promise: Promise<T>; give: (value: T) => void } {
  let give: (value: T) => void = () => undefined;
  const promise = new Promise<T>((resolve) => (give = resolve));
  return { promise, give };
}

/** Answers in place of the master. An unexpected request is refused with a message, so that it is noticed. */
export function fakeMaster(answers: Record<string, Answer>): FakeMaster {
  const asked: Asked[] = [];
  const master: FakeMaster = { asked, answers, of: (line) => asked.filter((each) => each.line === line) };
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
    const url = new URL(request.url);
    const text = await request.text();
    const one: Asked = {
      line: `${request.method} ${url.pathname}`,
      query: url.searchParams,
      body: text ? (JSON.parse(text) as unknown) : null,
    };
    asked.push(one);
    const found = master.answers[one.line];
    const body: unknown =
      found === undefined
        ? new Refusal(501, `the test has no answer to ${one.line}`)
        : typeof found === "function"
          ? await (found as (asked: Asked) => unknown)(one)
          : found;
    if (body instanceof Refusal)
      return Response.json({ error: { error: body.words }, ...body.more }, { status: body.status });
    return Response.json(body ?? {});
  });
  return master;
}
