import { type ComponentType, type ReactNode, useEffect, useState } from "react";
import { Loading } from "@/components/base/Loading";

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
): Lazy<P> {
  let Found: ComponentType<P> | null = null;
  const fetch = async () => {
    Found ??= (await load()).default;
  };
  function Part(props: P) {
    const [here, setHere] = useState(Found !== null);
    const [failure, setFailure] = useState<{ error: unknown } | null>(null);
    useEffect(() => {
      // Also where somebody else has fetched it since this was drawn.
      if (!here)
        fetch().then(
          () => setHere(true),
          (error: unknown) => setFailure({ error }),
        );
    }, [here]);
    if (failure) throw failure.error;
    return Found ? <Found {...props} /> : meanwhile(props);
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
