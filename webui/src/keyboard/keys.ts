/** Returns the pressed key as actions spell it; empty for a modifier alone. */
export function spell(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey">): string {
  const { key } = event;
  if (key === "Control" || key === "Meta" || key === "Alt" || key === "Shift") return "";
  const single = key.length === 1;
  const parts: string[] = [];
  if (event.ctrlKey || event.metaKey) parts.push("Mod");
  if (event.altKey) parts.push("Alt");
  // A shifted sign is its own key: `?`, not `Shift+/`.
  if (event.shiftKey && (!single || /[a-z]/i.test(key))) parts.push("Shift");
  parts.push(single && parts.length > 0 ? key.toUpperCase() : single ? key : key);
  return parts.join("+");
}

/** Returns true if the focused element accepts typed text. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable) return true;
  if (target instanceof HTMLInputElement)
    return !["checkbox", "radio", "button", "submit", "range"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Returns true for keys that the focused element handles: Enter and Space press a focused button. */
export function belongsToFocus(keys: string, target: EventTarget | null): boolean {
  if (keys !== "Enter" && keys !== " ") return false;
  return (
    target instanceof HTMLElement && target.closest("button, a[href], [role=menuitem], [role=tab], summary") !== null
  );
}
