import { useContext, useEffect } from "react";
import { Actions } from "./actions";
import { belongsToFocus, isTyping, spell } from "./keys";

const SEQUENCE_MS = 1_000;

/** Listens for the keys of all actions; mounted once. */
export function useKeyboard(): void {
  const registry = useContext(Actions);
  useEffect(() => {
    let begun = "";
    let timer: ReturnType<typeof setTimeout> | undefined;
    const listen = (event: KeyboardEvent) => {
      if (event.defaultPrevented) return;
      const pressed = spell(event);
      if (!pressed) return;
      if (isTyping(event.target) && !pressed.startsWith("Mod+")) {
        // Escape leaves the field and nothing more. "Back to the list" would discard the typed text, and so would the
        // browser, which clears a search field.
        if (pressed === "Escape" && !inDialog()) {
          event.preventDefault();
          (event.target as HTMLElement).blur();
        }
        return;
      }
      if (inDialog() && pressed !== "Mod+K") return;
      const keys = begun ? `${begun} ${pressed}` : pressed;
      if (belongsToFocus(keys, event.target)) return;
      clearTimeout(timer);
      begun = "";
      const action = registry.forKeys(keys);
      if (action) {
        event.preventDefault();
        if (action.disabled === undefined) action.run();
      } else if (registry.isPrefix(keys)) {
        begun = keys;
        timer = setTimeout(() => (begun = ""), SEQUENCE_MS);
      }
    };
    window.addEventListener("keydown", listen);
    return () => {
      clearTimeout(timer);
      window.removeEventListener("keydown", listen);
    };
  }, [registry]);
}

function inDialog(): boolean {
  return document.querySelector("[role=dialog]") !== null;
}
