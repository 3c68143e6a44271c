/**
 * Names of relays at a name server that takes dynamic updates (RFC 2136) with a shared key. Each name has a text record
 * of its fleet, and only such names are ever changed: every update has that as its condition.
 */
import { randomInt } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, isIP } from 'node:net'
import { type Change, encodeText, encodeUpdate, type Prerequisite, readAnswer, type TsigKey } from './update-message.ts'

export interface NameAddresses {
  readonly v4: string | null
  readonly v6: string | null
}

/**
 * `foreign`: the name has records that are not this fleet's, so it was left alone. `refused`: the server did not make
 * the change.
 */
export type NameFailure = 'foreign' | 'refused' | 'unreachable'

export class NameError extends Error {
  override name = 'NameError'
  constructor(
    readonly failure: NameFailure,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

export interface RelayNames {
  readonly domain: string
  /**
   * Makes a name lead to these addresses, or to none. Safe to repeat. Resolves once the server shows it. Rejects with
   * {@link NameError}.
   */
  point(label: string, addresses: NameAddresses): Promise<void>
  /** Rejects with {@link NameError} unless the server answers for the domain. Changes nothing. */
  check(): Promise<void>
  /** Removes a name with all of its records. Safe to repeat. Rejects with {@link NameError}. */
  remove(label: string): Promise<void>
}

export interface DynamicUpdateOptions {
  readonly domain: string
  readonly fleetName: string
  /** The primary name server of the domain: an address or a name. */
  readonly server: { readonly host: string; readonly port: number }
  readonly key: TsigKey
  readonly millisMax?: number
}

const ttlSeconds = 30
const defaultMillisMax = 3_000
const codes = { success: 0, nameInUse: 6, recordMissing: 8 } as const
const codeNames: Readonly<Record<number, string>> = {
  1: 'FORMERR',
  2: 'SERVFAIL',
  3: 'NXDOMAIN',
  4: 'NOTIMP',
  5: 'REFUSED',
  6: 'YXDOMAIN',
  7: 'YXRRSET',
  8: 'NXRRSET',
  9: 'NOTAUTH',
  10: 'NOTZONE',
}

export function createDynamicUpdates(options: DynamicUpdateOptions): RelayNames {
  const { domain, fleetName, server, key, millisMax = defaultMillisMax } = options
  const mark = encodeText(`svc-fleet=${fleetName}`)
  const nameOf = (label: string) => `${label}.${domain}`

  const update = async (prerequisites: Prerequisite[], changes: Change[]): Promise<number> => {
    const id = randomInt(65_536)
    const { message, mac } = encodeUpdate({ id, zone: domain, prerequisites, changes }, key, new Date())
    try {
      return readAnswer(await exchange(server, message, millisMax), { id, key, mac })
    } catch (error) {
      throw new NameError('unreachable', `the name server ${server.host}: ${(error as Error).message}`, {
        cause: error,
      })
    }
  }
  const refusal = (name: string, code: number): NameError =>
    new NameError('refused', `the name server ${server.host} answered ${codeNames[code] ?? code} about ${name}`)

  return {
    domain,
    point: async (label, addresses) => {
      const name = nameOf(label)
      const isOurs: Prerequisite = { type: 'equals', name, record: 'TXT', data: mark }
      const replaced: Change[] = [
        { type: 'delete', name, record: 'A' },
        { type: 'delete', name, record: 'AAAA' },
        ...addressChanges(name, addresses),
      ]
      const code = await update([isOurs], replaced)
      if (code === codes.success) return expectShown(options, name, addresses)
      if (code !== codes.recordMissing) throw refusal(name, code)
      const added: Change = { type: 'add', name, record: 'TXT', ttlSeconds, data: mark }
      const created = await update([{ type: 'unused', name }], [added, ...addressChanges(name, addresses)])
      if (created === codes.nameInUse) throw new NameError('foreign', `${name} has records of another owner`)
      if (created !== codes.success) throw refusal(name, created)
      return expectShown(options, name, addresses)
    },
    check: async () => {
      try {
        const resolver = await resolverOf(options)
        await resolver.resolveSoa(domain)
      } catch (error) {
        throw new NameError('unreachable', `the name server ${server.host}: ${(error as Error).message}`, {
          cause: error,
        })
      }
    },
    remove: async (label) => {
      const name = nameOf(label)
      const isOurs: Prerequisite = { type: 'equals', name, record: 'TXT', data: mark }
      const code = await update([isOurs], [{ type: 'delete', name, record: 'ANY' }])
      // It is another's, or does not exist any more.
      if (code !== codes.success && code !== codes.recordMissing) throw refusal(name, code)
    },
  }
}

const addressChanges = (name: string, { v4, v6 }: NameAddresses): Change[] => [
  ...(v4 === null ? [] : [{ type: 'add', name, record: 'A', ttlSeconds, data: encodeV4(v4) } as const]),
  ...(v6 === null ? [] : [{ type: 'add', name, record: 'AAAA', ttlSeconds, data: encodeV6(v6) } as const]),
]

const encodeV4 = (address: string): Buffer => Buffer.from(address.split('.').map(Number))

/** @param address without a zone, with at most one `::`. */
function encodeV6(address: string): Buffer {
  const [head = '', tail] = address.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)))
  const [before, after] = [groups(head), groups(tail ?? '')]
  const all = [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after]
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]))
}

async function resolverOf({ server, millisMax = defaultMillisMax }: DynamicUpdateOptions): Promise<Resolver> {
  const resolver = new Resolver({ timeout: millisMax, tries: 1 })
  resolver.setServers([await socketAddressOf(server)])
  return resolver
}

/** Rejects unless the server shows what was written. */
async function expectShown(options: DynamicUpdateOptions, name: string, { v4, v6 }: NameAddresses): Promise<void> {
  const { server } = options
  const resolver = await resolverOf(options)
  const shown = async (type: 'A' | 'AAAA'): Promise<string | null> => {
    try {
      const [address = null] = type === 'A' ? await resolver.resolve4(name) : await resolver.resolve6(name)
      return address
    } catch (error) {
      if (['ENODATA', 'ENOTFOUND'].includes((error as NodeJS.ErrnoException).code ?? '')) return null
      throw new NameError('unreachable', `the name server ${server.host} does not show ${name}`, { cause: error })
    }
  }
  const [shownV4, shownV6] = await Promise.all([shown('A'), shown('AAAA')])
  const isShown = shownV4 === v4 && (shownV6 === null) === (v6 === null)
  if (!isShown) throw new NameError('refused', `the name server ${server.host} shows ${shownV4} for ${name}`)
}

async function socketAddressOf({ host, port }: DynamicUpdateOptions['server']): Promise<string> {
  const address = isIP(host) !== 0 ? host : (await new Resolver().resolve4(host))[0]
  return address?.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}

/** Over TCP, where messages of any length arrive whole. */
async function exchange({ host, port }: DynamicUpdateOptions['server'], message: Buffer, millisMax: number) {
  const socket = connect({ host, port })
  const signal = AbortSignal.timeout(millisMax)
  const abort = () => socket.destroy(new Error(`no answer within ${millisMax} ms`))
  signal.addEventListener('abort', abort, { once: true })
  try {
    await once(socket, 'connect')
    const length = Buffer.alloc(2)
    length.writeUInt16BE(message.length)
    socket.write(Buffer.concat([length, message]))
    let received = Buffer.alloc(0)
    for await (const chunk of socket) {
      received = Buffer.concat([received, chunk as Buffer])
      if (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0))
        return received.subarray(2, 2 + received.readUInt16BE(0))
    }
    throw new Error('the connection ended without an answer')
  } finally {
    signal.removeEventListener('abort', abort)
    socket.destroy()
  }
}
