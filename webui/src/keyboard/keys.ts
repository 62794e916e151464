/** What was pressed, spelled as actions spell it; empty for a modifier alone. */
export function spell(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey">): string {
  const { key } = event;
  if (key === "Control" || key === "Meta" || key === "Alt" || key === "Shift") return "";
  const single = key.length === 1;
  const parts: string[] = [];
  if (event.ctrlKey || event.metaKey) parts.push("Mod");
  if (event.altKey) parts.push("Alt");
  // A shifted sign is its own key: `?` is not `Shift+/`.
  if (event.shiftKey && (!single || /[a-z]/i.test(key))) parts.push("Shift");
  parts.push(single && parts.length > 0 ? key.toUpperCase() : single ? key : key);
  return parts.join("+");
}

/** Whether keys go into what has the focus. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable) return true;
  if (target instanceof HTMLInputElement)
    return !["checkbox", "radio", "button", "submit", "range"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Keys with a meaning of the focused thing's own: Enter and Space on a button press the button. */
export function belongsToFocus(keys: string, target: EventTarget | null): boolean {
  if (keys !== "Enter" && keys !== " ") return false;
  return (
    target instanceof HTMLElement && target.closest("button, a[href], [role=menuitem], [role=tab], summary") !== null
  );
}
