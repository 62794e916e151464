/**
 * Returns `{a: {b: 1}}` as `{"a.b": 1}`. Lists are not flattened. The result has no prototype, since a key may be
 * `__proto__`.
 */
export function flatten(
  value: Record<string, unknown>,
  prefix = "",
  into: Record<string, unknown> = Object.create(null) as Record<string, unknown>,
): Record<string, unknown> {
  for (const [key, inner] of Object.entries(value)) {
    const name = prefix ? `${prefix}.${key}` : key;
    if (typeof inner === "object" && inner !== null && !Array.isArray(inner))
      flatten(inner as Record<string, unknown>, name, into);
    else into[name] = inner;
  }
  return into;
}
