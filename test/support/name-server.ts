/** BIND, a real name server, with a zone that takes dynamic updates with a key. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '../../platform/find-program.ts'
import { eventually } from './eventually.ts'
import { findFreePort } from './ports.ts'

export const zone = 'relays.example.com'

/** Debian's package installs it where only root's PATH leads. */
export const findNamed = (): string | undefined =>
  findProgram('named', [...(process.env.PATH ?? '').split(':'), '/usr/sbin'])

export interface NameServer {
  readonly port: number
  readonly key: { readonly name: string; readonly secret: Buffer }
  /** The addresses that it shows for a name of the zone. */
  addressesOf(label: string): Promise<{ readonly v4: readonly string[]; readonly v6: readonly string[] }>
  textsOf(label: string): Promise<readonly string[]>
  stop(): Promise<void>
  start(): Promise<void>
}

export async function startNameServer(): Promise<NameServer & { close(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'relay-named-'))
  const port = await findFreePort()
  const key = { name: 'svc', secret: randomBytes(32) }
  const path = (name: string) => JSON.stringify(join(folder, name))
  await writeFile(
    join(folder, 'zone.db'),
    `$TTL 60\n@ IN SOA ns.${zone}. admin.${zone}. 1 3600 600 86400 60\n@ IN NS ns.${zone}.\nns IN A 127.0.0.1\nforeign IN A 192.0.2.1\n`,
  )
  await writeFile(
    join(folder, 'named.conf'),
    `options { directory ${path('')}; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; }; pid-file ${path('named.pid')};
      recursion no; session-keyfile ${path('session.key')}; managed-keys-directory ${path('')}; };
    controls { };
    key "${key.name}" { algorithm hmac-sha256; secret "${key.secret.toString('base64')}"; };
    zone "${zone}" { type primary; file ${path('zone.db')}; allow-update { key "${key.name}"; }; };\n`,
  )
  let child: ReturnType<typeof spawn> | undefined
  const resolver = new Resolver({ timeout: 1000, tries: 1 })
  resolver.setServers([`127.0.0.1:${port}`])
  const lookUp = async <Value>(call: () => Promise<Value[]>): Promise<Value[]> => {
    try {
      return await call()
    } catch (error) {
      if (['ENODATA', 'ENOTFOUND'].includes((error as NodeJS.ErrnoException).code ?? '')) return []
      throw error
    }
  }
  const start = async () => {
    child = spawn(findNamed() ?? 'named', ['-g', '-c', join(folder, 'named.conf')], { stdio: 'ignore' })
    await once(child, 'spawn')
    await eventually(
      () => resolver.resolve4(`ns.${zone}`).catch(() => []),
      (addresses) => addresses.length === 1,
    )
  }
  const stop = async () => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  await start()
  return {
    port,
    key,
    start,
    stop,
    addressesOf: async (label) => ({
      v4: await lookUp(() => resolver.resolve4(`${label}.${zone}`)),
      v6: await lookUp(() => resolver.resolve6(`${label}.${zone}`)),
    }),
    textsOf: async (label) =>
      (await lookUp(() => resolver.resolveTxt(`${label}.${zone}`))).map((parts) => parts.join('')),
    close: async () => {
      await stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
