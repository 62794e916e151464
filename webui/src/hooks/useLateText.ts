import { useCallback, useEffect, useState } from "react";

/**
 * A text that is displayed at once while typed and committed after a pause. A change from outside (a click, a saved
 * view, the back button) replaces it; a committed text takes a moment to come back, and more may be typed meanwhile.
 * The third value commits without the pause, when the field loses the focus.
 */
export function useLateText(
  value: string,
  onChange: (value: string) => void,
  pause: number,
): [string, (typed: string) => void, () => void] {
  const [typed, setTyped] = useState(value);
  const [sent, setSent] = useState(value);
  const [seen, setSeen] = useState(value);
  if (seen !== value) {
    setSeen(value);
    if (sent !== value) {
      setSent(value);
      setTyped(value);
    }
  }
  const send = useCallback(() => {
    if (typed === sent) return;
    setSent(typed);
    onChange(typed);
  }, [typed, sent, onChange]);
  useEffect(() => {
    if (typed === sent) return undefined;
    const timer = setTimeout(send, pause);
    return () => clearTimeout(timer);
  }, [typed, sent, send, pause]);
  return [typed, setTyped, send];
}
