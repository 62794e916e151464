import { useCallback, useEffect, useState } from "react";

/**
 * A text that shows at once what is typed and hands it on after a pause. What is changed from outside (a click, a saved
 * view, the back button) is taken over; what was sent from here takes a moment to come back, and more may be typed
 * meanwhile. The third hands it on without the pause: when the field is left.
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
