import { useEffect, useState } from "react";

/**
 * A text that shows at once what is typed and hands it on after a pause. What is changed from outside (a click, a saved
 * view, the back button) is taken over; what was sent from here takes a moment to come back, and more may be typed
 * meanwhile.
 */
export function useLateText(value: string, onChange: (value: string) => void, pause: number): [string, (typed: string) => void] {
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
  useEffect(() => {
    if (typed === sent) return undefined;
    const timer = setTimeout(() => {
      setSent(typed);
      onChange(typed);
    }, pause);
    return () => clearTimeout(timer);
  }, [typed, sent, onChange, pause]);
  return [typed, setTyped];
}
