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
      // Loads again when the connection is restored; picks up what another component has loaded since.
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

interface Page {
  Component: ComponentType;
  /** What the page fetches later, by the last part of its address. */
  parts?: ReadonlyMap<string, Lazy<never>>;
}

/** A page as a route loads it: with the address, before it is drawn. Code that does not arrive is the page's own matter. */
export function lazyPage(load: () => Promise<Page>) {
  const Part = lazy(
    async () => {
      const { Component, parts } = await load();
      // A page that is opened by its address waits for its session before it is drawn; its part need not.
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
