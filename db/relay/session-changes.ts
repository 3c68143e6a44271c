/** Changes of relay sessions that their clients see, which triggers send with NOTIFY. */
import { type Database, listen } from '../connection.ts'

const channel = 'relay_session_changed'

interface SessionChange {
  readonly userId: string
  readonly sessionId: string
  /** Whether only its stream has changed: by a new stream event, or in what is right or wrong with it. */
  readonly isOfStream: boolean
}

interface Listener {
  readonly onChange: (change: SessionChange) => void
  /** Called whenever listening begins, also after a lost connection: changes before it may have been missed. */
  readonly onListening: () => void
}

/** Listens by the rules of `listen`. */
export async function listenForSessionChanges(sql: Database, { onChange, onListening }: Listener): Promise<void> {
  const onNotify = (payload: string) => {
    const [userId = '', sessionId = '', subject] = payload.split(' ')
    onChange({ userId, sessionId, isOfStream: subject !== undefined })
  }
  await listen(sql, channel, onNotify, onListening)
}
