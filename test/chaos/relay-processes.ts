/** Faults of relays that are processes of the local provider. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isRunning, sendSignal } from '../../platform/processes.ts'
import { type LocalRelay, listLocalRelays, relayFolderOf } from '../../providers/relay/local-relays.ts'
import type { Journal, RelayFault } from './journal.ts'
import type { FaultKind } from './plan.ts'
import type { Service } from './service.ts'

const types = { kill: 'kill', pause: 'freeze', cut: 'cut' } as const satisfies Record<FaultKind, RelayFault['type']>

export class RelayProcesses {
  constructor(
    readonly service: Pick<Service, 'dataDir' | 'relayPaths'>,
    readonly journal: Journal,
  ) {}

  list(): Promise<LocalRelay[]> {
    return listLocalRelays(relayFolderOf(this.service.dataDir))
  }

  /**
   * Kills the process, or stops it for a while, as when its machine hangs, or cuts it off from the workers and the APIs
   * in both directions. Resolves when the fault is over.
   */
  async fail(kind: FaultKind, relay: LocalRelay, millis: number): Promise<void> {
    const { instanceId, sessionId, pid } = relay
    const at = Date.now()
    const until = kind === 'kill' ? {} : { until: at + millis }
    this.journal.relayFaults.push({ type: types[kind], sessionId, instanceId, at, ...until })
    const { relayPaths } = this.service
    if (kind === 'cut') relayPaths.cut(instanceId)
    else sendSignal(pid, kind === 'kill' ? 'SIGKILL' : 'SIGSTOP')
    if (kind === 'kill') return
    await sleep(millis)
    if (kind === 'cut') relayPaths.restore(instanceId)
    // It may have been replaced, and ended by the worker.
    else if (await isRunning(relay)) sendSignal(pid, 'SIGCONT')
  }
}
