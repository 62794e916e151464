import { type RefObject, useEffect, useLayoutEffect, useState } from "react";

/** Pixels above and below the screen that count as near it. */
const MARGIN = 200;

/**
 * True from the first time that the element comes near the screen. An element that is there from the beginning is seen
 * at once: an observer tells of it some frames later, or much later on a busy machine.
 */
export function useOnScreen(element: RefObject<Element | null>): boolean {
  const [seen, setSeen] = useState(typeof IntersectionObserver === "undefined");
  useLayoutEffect(() => {
    const place = element.current?.getBoundingClientRect();
    if (place && place.bottom > -MARGIN && place.top < window.innerHeight + MARGIN) setSeen(true);
  }, [element]);
  useEffect(() => {
    if (seen || !element.current) return undefined;
    const observer = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && setSeen(true),
      { rootMargin: `${MARGIN}px` },
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element, seen]);
  return seen;
}
