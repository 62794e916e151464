import { type RefObject, useLayoutEffect } from "react";

/** While the element is drawn, messages appear above it: it is at the foot of the page. */
export function useFootRoom(element: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    document.documentElement.style.setProperty("--foot-room", `${element.current?.offsetHeight ?? 0}px`);
  });
  useLayoutEffect(() => () => void document.documentElement.style.removeProperty("--foot-room"), []);
}
