import { clsx } from "clsx";
import { pageUrl } from "@/services/trials";
import buttonStyles from "@/components/base/Button.module.css";

/** Links to the ports that a task declares. Each opens at an origin of its own, where it has no rights on this page. */
export function OpenPorts({ taskId, ports }: { taskId: string; ports: readonly number[] }) {
  return ports.map((port) => (
    <a
      key={port}
      className={clsx(buttonStyles.button, buttonStyles.quiet)}
      href={pageUrl(taskId, port)}
      target="_blank"
      rel="noopener"
    >
      Open port {port}
    </a>
  ));
}
