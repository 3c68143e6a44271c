/**
 * An SLS server as the SRT engine, beside the relay on the same machine. Several relays may share one, also of one
 * account, so each has stream ids of its own, which never contain the stream token. The gate has checked the token
 * before.
 */
import type { SlsServer } from '../domain/relay/engines.ts'
import type { Engine } from './engine.ts'
import type { Log } from './log.ts'
import { createSlsClient } from './sls-client.ts'

export interface SlsOptions {
  readonly server: SlsServer
  /** Distinguishes the streams of relays: letters, digits, dots, hyphens and underscores. */
  readonly streamName: string
  readonly log: Log
}

export function createSlsEngine({ server, streamName, log }: SlsOptions): Engine {
  const client = createSlsClient(server)
  const ids = { publisher: `publish/live/${streamName}`, player: `play/live/${streamName}` }
  const address = new URL(server.apiUrl).hostname
  /** Rejected where the last attempt failed; the next connection tries again. */
  let registration: Promise<void> | undefined
  const register = () => {
    registration ??= client.register(ids).catch((error: Error) => {
      registration = undefined
      throw error
    })
    return registration
  }
  /** The latest disconnect, which must not reach the next publisher. */
  let disconnect = Promise.resolve()
  const warn = (action: string) => (error: Error) => log('warn', `${action} failed`, { error: error.message })
  register().catch(warn('the registration at SLS'))

  return {
    name: 'sls',
    async open(role) {
      await Promise.all([register(), disconnect])
      return {
        address,
        port: role === 'publish' ? server.publishPort : server.playPort,
        streamId: role === 'publish' ? ids.publisher : ids.player,
        // SLS ends a connection with a message of SRT, which the gate reads.
        ended: new Promise(() => {}),
        connected() {},
        close() {
          // A lost message of SRT would leave the stream in SLS until its timeout, and block the next publisher.
          if (role === 'publish') disconnect = client.disconnect(ids.publisher).catch(warn('the disconnect at SLS'))
        },
      }
    },
    async close() {
      await Promise.all([disconnect, client.unregister(ids.player).catch(warn('the removal of stream ids from SLS'))])
    },
  }
}
