/**
 * Records of a stream into a task, as harness/determined/streams/records.py describes them: one byte for the kind, then
 * the content.
 */
export const SUBPROTOCOL = "detent.stream.v1";
export const MAX_CONTENT_BYTES = 64 * 1024;
const OFFSET_BYTES = 9;

/** The other side sent what no version of the protocol sends. */
export class StreamBroken extends Error {}

export const Kind = {
  INPUT: 0,
  OUTPUT: 1,
  ERROR_OUTPUT: 2,
  /** The end, from the task: `{code}`, `{signal}` or `{error}`. */
  STATUS: 3,
  RESIZE: 4,
  SIGNAL: 5,
  /** No more bytes follow in this direction. */
  END: 6,
  OFFSET: 7,
} as const;
export type Kind = (typeof Kind)[keyof typeof Kind];
type Bytes = Uint8Array<ArrayBuffer>;

export interface StreamRecord {
  kind: Kind;
  content: Bytes;
}

export function recordOf(kind: Kind, value: object): StreamRecord {
  return { kind, content: new TextEncoder().encode(JSON.stringify(value)) };
}

/** Returns the JSON object in a record. Throws StreamBroken. */
export function valueOf(record: StreamRecord): Record<string, unknown> {
  let value: unknown = null;
  try {
    value = JSON.parse(new TextDecoder().decode(record.content));
  } catch {
    // Refused below.
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new StreamBroken("a record without a JSON object");
  return value as Record<string, unknown>;
}

export function encode(record: StreamRecord): Bytes {
  const message = new Uint8Array(record.content.length + 1);
  message[0] = record.kind;
  message.set(record.content, 1);
  return message;
}

export function encodeOffset(offset: number): Bytes {
  const message = new Uint8Array(OFFSET_BYTES);
  message[0] = Kind.OFFSET;
  new DataView(message.buffer).setBigUint64(1, BigInt(offset));
  return message;
}

/** Returns a record, or the offset that a message tells. Throws StreamBroken. */
export function decode(data: unknown): StreamRecord | number {
  if (!(data instanceof ArrayBuffer)) throw new StreamBroken("a message that is not binary");
  const message = new Uint8Array(data);
  const kind = message[0];
  if (kind === undefined || kind > Kind.OFFSET) throw new StreamBroken("a message of an unknown kind");
  if (message.length > MAX_CONTENT_BYTES + 1) throw new StreamBroken(`a message of ${message.length} bytes`);
  if (kind !== Kind.OFFSET) return { kind: kind as Kind, content: message.subarray(1) };
  if (message.length !== OFFSET_BYTES) throw new StreamBroken("an offset that is no number of eight bytes");
  return Number(new DataView(data).getBigUint64(1));
}
