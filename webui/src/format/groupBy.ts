/**
 * Groups items by a key, in the order of the keys' first appearance. Like Map.groupBy, which browsers of 2023 and Node
 * 20 lack.
 */
export function groupBy<K, V>(items: Iterable<V>, by: (item: V) => K): Map<K, V[]> {
  const found = new Map<K, V[]>();
  for (const item of items) {
    const key = by(item);
    const members = found.get(key);
    if (members) members.push(item);
    else found.set(key, [item]);
  }
  return found;
}
