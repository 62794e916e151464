import { type MouseEvent, type ReactNode, type RefObject, useLayoutEffect, useRef } from "react";

interface Props {
  label: string;
  role?: "group" | "toolbar";
  className?: string | undefined;
  box?: RefObject<HTMLDivElement | null>;
  children: ReactNode;
}

/**
 * Buttons that appear and disappear with the available actions. If the focused one disappears, the first one gets the
 * focus. The second click of a double click is ignored: another button may be under the pointer by then.
 */
export function ActionGroup({ label, role = "group", className, box, children }: Props) {
  const own = useRef<HTMLDivElement>(null);
  const group = box ?? own;
  const isFocused = useRef(false);
  // Events of dialogs and menus that are opened from here bubble through as well.
  const holds = (target: EventTarget | null) => target instanceof Node && !!group.current?.contains(target);
  useLayoutEffect(() => {
    if (isFocused.current && document.activeElement === document.body) group.current?.querySelector("button")?.focus();
  });
  const ignoreSecond = (event: MouseEvent) => {
    if (event.detail > 1 && holds(event.target)) event.stopPropagation();
  };
  return (
    <div
      ref={group}
      className={className}
      role={role}
      aria-label={label}
      onClickCapture={ignoreSecond}
      onFocus={(event) => (isFocused.current = holds(event.target))}
      onBlur={(event) => (isFocused.current = holds(event.relatedTarget))}
    >
      {children}
    </div>
  );
}
