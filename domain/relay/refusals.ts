/**
 * Why relays refuse callers: the reasons that their logs and reports name. The list is bounded, since each has a
 * counter.
 */
export const relayRefusals = [
  'unauthorized',
  'overload',
  'bad_mode',
  'conflict',
  'down',
  'bad_request',
  'version',
  'passphrase',
  'engine',
  'srt_at_srtla_port',
  'srtla_at_srt_port',
] as const
export type RelayRefusal = (typeof relayRefusals)[number]
