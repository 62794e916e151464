/** Returns the ports of `environment.proxy_ports` that a browser can open, in the order of the configuration. */
export function declaredPorts(config: Record<string, unknown>): number[] {
  const environment: unknown = config.environment;
  const ports: unknown = isRecord(environment) ? environment.proxy_ports : undefined;
  if (!Array.isArray(ports)) return [];
  const pages = ports.filter((each: unknown) => isRecord(each) && each.proxy_tcp !== true) as Record<string, unknown>[];
  return [...new Set(pages.map((each) => Number(each.proxy_port)))].filter(
    (port) => Number.isInteger(port) && port > 0 && port < 65536,
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
