import { createContext } from "react";

/**
 * True while the sign-in is shown over everything: a dialog that opens now waits, since two that open at once would each
 * hide the other. A dialog that was already open stays.
 */
export const DialogsWait = createContext(false);
