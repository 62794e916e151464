import { type RefObject, useLayoutEffect } from "react";

/** Keeps toasts above the element, a bar at the bottom of the page, while it is mounted. */
export function useFootRoom(element: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    document.documentElement.style.setProperty("--foot-room", `${element.current?.offsetHeight ?? 0}px`);
  });
  useLayoutEffect(() => () => void document.documentElement.style.removeProperty("--foot-room"), []);
}
