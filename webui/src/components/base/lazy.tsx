import { type ComponentType, type ReactNode, useCallback, useEffect, useState } from "react";
import { Loading } from "./Loading";
import { useStreamState } from "@/live/LiveProvider";
import { PartFailure } from "./PartFailure";

export interface Lazy<P> {
  (props: P): ReactNode;
  /** Fetches the part before it is rendered. */
  fetch: () => Promise<void>;
}

/**
 * A part of the page that is fetched when it is first rendered, or before. Unlike React's `lazy` it is displayed as
 * soon as it has loaded: a Suspense boundary that has shown its fallback delays the content by 300 ms.
 */
export function lazy<P extends object>(
  load: () => Promise<{ default: ComponentType<P> }>,
  meanwhile: (props: P) => ReactNode = () => <Loading what="this part" />,
  around: (failure: ReactNode) => ReactNode = (failure) => failure,
): Lazy<P> {
  let Found: ComponentType<P> | null = null;
  const fetch = async () => {
    Found ??= (await load()).default;
  };
  function Part(props: P) {
    const [here, setHere] = useState(Found !== null);
    const [failed, setFailed] = useState(false);
    const { connection } = useStreamState();
    const load = useCallback(
      () =>
        fetch().then(
          () => setHere(true),
          () => setFailed(true),
        ),
      [],
    );
    useEffect(() => {
      // Loads again when the connection is restored, and uses what another component has loaded since.
      if (!here) void load();
    }, [here, connection, load]);
    if (Found) return <Found {...props} />;
    return failed ? around(<PartFailure retry={() => void load()} />) : meanwhile(props);
  }
  return Object.assign(Part, { fetch });
}

/** Fetches the part that an address names, in parallel with the first query of the page. */
export function useFetched<P>(parts: ReadonlyMap<string, Lazy<P>>, name: string): void {
  useEffect(
    () =>
      void parts
        .get(name)
        ?.fetch()
        .catch(() => undefined),
    [parts, name],
  );
}

interface Page {
  Component: ComponentType;
  /** The lazily loaded parts of the page, by the last segment of its address. */
  parts?: ReadonlyMap<string, Lazy<never>>;
}

/**
 * Returns the loader of a route's page, which fetches the code before rendering. The page handles a failed fetch
 * itself.
 */
export function lazyPage(load: () => Promise<Page>) {
  const Part = lazy(
    async () => {
      const { Component, parts } = await load();
      // A page that is opened by its address waits for its session before it renders. Its part need not wait.
      const named = window.location.pathname.split("/").at(-1) ?? "";
      void parts
        ?.get(named)
        ?.fetch()
        .catch(() => undefined);
      return { default: Component };
    },
    undefined,
    (failure) => <main>{failure}</main>,
  );
  return {
    lazy: async () => {
      // The router caches a failed import and would not retry it.
      await Part.fetch().catch(() => undefined);
      return { Component: Part };
    },
  };
}
