/** The state file of a relay, by which its provider finds its ports. */
import { writeFileAtomically } from '../platform/atomic-file.ts'

export interface Ports {
  readonly srtlaPort: number
  readonly publishPort: number
  readonly playPort: number
  readonly statsPort: number
}

/** Holds no secret. */
export interface StateFile extends Ports {
  readonly instanceId: string
  readonly sessionId: string
  readonly region: string
  readonly pid: number
  readonly host: string
  readonly startedAt: string
}

export const writeStateFile = (file: string, state: StateFile): Promise<void> =>
  writeFileAtomically(file, JSON.stringify(state))
