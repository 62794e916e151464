import { expect, test } from "vitest";
import { declaredPorts } from "./declaredPorts";

test("ports for browsers are listed once, in the order of the configuration", () => {
  const proxy_ports = [
    { proxy_port: 8888 },
    { proxy_port: 22, proxy_tcp: true },
    { proxy_port: 6006 },
    { proxy_port: 8888 },
  ];
  expect(declaredPorts({ environment: { proxy_ports } })).toEqual([8888, 6006]);
});

test.each([
  {},
  { environment: null },
  { environment: { proxy_ports: "8888" } },
  { environment: { proxy_ports: [null, {}] } },
])("a configuration without ports has none: %j", (config) => {
  expect(declaredPorts(config)).toEqual([]);
});
