/** Metrics of the WebSocket clients of this process. */
import { Counter, Gauge, type Registry } from 'prom-client'

/** Why the service closed a socket without a fault of its own: see docs/operating.md. */
export const dropReasons = ['slow', 'no_pong', 'unexpected_message'] as const
export type DropReason = (typeof dropReasons)[number]

export interface RelaySocketMetrics {
  setClients(count: number): void
  countDrop(reason: DropReason): void
}

export function createRelaySocketMetrics(registry: Registry): RelaySocketMetrics {
  const clients = new Gauge({
    name: 'svc_relay_ws_clients',
    help: 'Connected WebSocket clients of this process.',
    registers: [registry],
  })
  const drops = new Counter({
    name: 'svc_relay_ws_drops_total',
    help: 'WebSocket clients that were disconnected, by reason.',
    labelNames: ['reason'],
    registers: [registry],
  })
  for (const reason of dropReasons) drops.inc({ reason }, 0)
  return { setClients: (count) => clients.set(count), countDrop: (reason) => drops.inc({ reason }) }
}
