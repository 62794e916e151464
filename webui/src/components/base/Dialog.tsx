import { lazy } from "./lazy";
import type { DialogProps } from "./DialogWindow";
import typography from "@/styles/typography.module.css";

export const DialogWindow = lazy<DialogProps>(
  () => import("./DialogWindow"),
  ({ title }) => <div role="dialog" aria-label={title} aria-busy="true" className={typography.visuallyHidden} />,
);

/**
 * A modal dialog over the page. The page is inert also while the code of the dialog loads, so that no key reaches it.
 */
export function Dialog(props: DialogProps) {
  return props.open ? <DialogWindow {...props} /> : null;
}
