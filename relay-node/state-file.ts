/** The state file of a relay, by which its provider finds its ports. */

import type { RelayPorts } from '../domain/relay/ports.ts'
import { writeFileAtomically } from '../platform/atomic-file.ts'

/** Holds no secret. */
export interface StateFile extends RelayPorts {
  readonly instanceId: string
  /** That of its arguments; null for a relay that was started without a session. */
  readonly sessionId: string | null
  readonly region: string
  readonly pid: number
  readonly host: string
  readonly startedAt: string
}

export const writeStateFile = (file: string, state: StateFile): Promise<void> =>
  writeFileAtomically(file, JSON.stringify(state))
