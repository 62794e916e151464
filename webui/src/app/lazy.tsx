import { type ComponentType, type ReactNode, useCallback, useEffect, useState } from "react";
import { Loading } from "@/components/base/Loading";
import { useStreamState } from "@/live/LiveProvider";
import { PartFailure } from "./PartFailure";

export interface Lazy<P> {
  (props: P): ReactNode;
  /** Fetched before it is drawn. */
  fetch: () => Promise<void>;
}

/**
 * A part of the page that is fetched when it is first drawn, or before. As React's `lazy`, but shown as soon as it is
 * here: a boundary that has once shown what is there meanwhile holds the part itself back for 300 ms.
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
      // Also where somebody else has fetched it since this was drawn, and again when a lost connection is back.
      if (!here) void load();
    }, [here, connection, load]);
    if (Found) return <Found {...props} />;
    return failed ? around(<PartFailure retry={() => void load()} />) : meanwhile(props);
  }
  return Object.assign(Part, { fetch });
}

/** Fetches the part that an address names, if it names one: with the page's first question and not after it. */
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

/** A page as a route loads it: with the address, before it is drawn. Code that does not arrive is the page's own matter. */
export function lazyPage(load: () => Promise<{ Component: ComponentType }>) {
  const Part = lazy(
    async () => ({ default: (await load()).Component }),
    undefined,
    (failure) => <main>{failure}</main>,
  );
  return {
    lazy: async () => {
      // The router would remember the failure, and never ask again.
      await Part.fetch().catch(() => undefined);
      return { Component: Part };
    },
  };
}
