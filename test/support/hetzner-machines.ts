/**
 * Simulated relays on the servers of the double of Hetzner Cloud: each reports as `relay-node` does while its server
 * exists.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { instanceSecret } from '../../providers/relay/instance-secrets.ts'
import type { Client } from './api.ts'
import { atEnd } from './at-end.ts'
import type { StoredServer } from './hetzner-project.ts'
import type { HetznerServer } from './hetzner-server.ts'
import type { UnboundReply } from './unbound-relays.ts'

interface Machines {
  readonly cloud: HetznerServer
  readonly api: Client
  /** The first of SVC_RELAY_AUTH_SECRET. */
  readonly masterSecret: string
}

const lookMillis = 50
const failureSeconds = 0.5
const waitSeconds = 5

/** Starts a relay on each server, present and future, until the tests of the file have ended. */
export function startMachines(machines: Machines): void {
  const { project } = machines.cloud
  const running = new Map<number, Promise<void>>()
  let hasEnded = false
  const exists = (server: StoredServer) => !hasEnded && !server.isOff && project.find(server.id) !== undefined
  const boot = setInterval(() => {
    for (const server of project.servers())
      if (!running.has(server.id)) running.set(server.id, runRelay(server, exists, machines))
  }, lookMillis)
  atEnd(async () => {
    hasEnded = true
    clearInterval(boot)
    await Promise.all(running.values())
  })
}

/** The instance boots without a session and reports with the one that it is assigned. It ends when it is to stop. */
async function runRelay(
  server: StoredServer,
  exists: (server: StoredServer) => boolean,
  { api, masterSecret }: Machines,
): Promise<void> {
  const headers = { 'X-Relay-Auth': instanceSecret(masterSecret, server.name) }
  let sessionId: string | null = null
  let binding: number | undefined
  while (exists(server)) {
    const body: object = { session_id: sessionId, instance_id: server.name, wait_seconds: waitSeconds, binding }
    // A report that fails is repeated, like that of a relay whose API is away.
    const reply = await api.post<Partial<UnboundReply>>('/relay/health', body, { headers }).catch(() => undefined)
    const { desired, assignment, report_in_seconds: pauseSeconds = failureSeconds } = reply?.body ?? {}
    if (desired === 'stop' || (reply !== undefined && reply.status !== 200 && reply.status < 500)) return
    sessionId ??= assignment?.session_id ?? null
    binding ??= assignment?.binding
    await sleep(pauseSeconds * 1000)
  }
}
