/** Stream events that relays reported to this process. */
import { Counter, type Registry } from 'prom-client'
import { type StreamEventKind, streamEventKinds } from '../../domain/relay/stream-events.ts'

export interface StreamEventMetrics {
  countEvent(kind: StreamEventKind): void
}

export function createStreamEventMetrics(registry: Registry): StreamEventMetrics {
  const events = new Counter({
    name: 'svc_stream_events_total',
    help: 'Stream events that relays reported, by kind.',
    labelNames: ['kind'],
    registers: [registry],
  })
  for (const kind of streamEventKinds) events.inc({ kind }, 0)
  return { countEvent: (kind) => events.inc({ kind }) }
}
