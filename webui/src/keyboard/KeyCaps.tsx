import styles from "./KeyCaps.module.css";
const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** Keys as caps: `g e`, `Ctrl K`. */
export function KeyCaps({ keys }: { keys: string }) {
  return (
    <span className={styles.keys}>
      {keys.split(" ").map((chord, index) => (
        <kbd key={index}>{chord.replace("Mod+", isMac ? "⌘" : "Ctrl ")}</kbd>
      ))}
    </span>
  );
}
