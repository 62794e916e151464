import { createContext } from "react";

/**
 * True while the sign-in is shown over everything. A dialog that opens meanwhile waits, since two that open at once
 * would hide each other. A dialog that was already open stays.
 */
export const DialogsWait = createContext(false);
