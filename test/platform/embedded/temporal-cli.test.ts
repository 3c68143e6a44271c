/** The search for the Temporal CLI, and its installation. */
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { findTemporalCli, type TemporalCliSearch } from '../../../platform/embedded/temporal-cli.ts'
import { temporaryFolder } from '../../support/folders.ts'

/** A program that answers `--version` as the CLI with that server does. */
async function program(path: string, server = '1.30.0'): Promise<string> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, `#!/bin/sh\necho "temporal version 1.5.1 (Server ${server}, UI 2.42.1)"\n`)
  await chmod(path, 0o755)
  return path
}

async function search(): Promise<TemporalCliSearch & { messages: string[]; root: string }> {
  const root = await temporaryFolder()
  const messages: string[] = []
  return {
    explicit: undefined,
    searchPath: [join(root, 'bin')],
    dataDir: join(root, 'data'),
    cacheDir: join(root, 'cache'),
    progress: (text) => messages.push(text),
    installers: [],
    messages,
    root,
  }
}

test('the configured program has precedence', async () => {
  const given = await search()
  await program(join(given.root, 'bin', 'temporal'))
  const named = await program(join(given.root, 'mine'))
  expect(await findTemporalCli({ ...given, explicit: named })).toBe(named)
})

test('a configured program that does not run is an error, and is not replaced by another', async () => {
  const given = await search()
  await program(join(given.root, 'bin', 'temporal'))
  await expect(findTemporalCli({ ...given, explicit: '/nowhere/temporal' })).rejects.toThrow(
    /^SVC_TEMPORAL_CLI is set to \/nowhere\/temporal, which does not run/,
  )
})

test('the PATH comes before the data folder, and that before the cache', async () => {
  const given = await search()
  const cached = await program(join(given.cacheDir, 'temporal-cli-1.5.1', 'temporal'))
  expect(await findTemporalCli(given)).toBe(cached)
  const inDataFolder = await program(join(given.dataDir, 'temporal-cli-1.5.1', 'temporal'))
  expect(await findTemporalCli(given)).toBe(inDataFolder)
  const installed = await program(join(given.root, 'bin', 'temporal'))
  expect(await findTemporalCli(given)).toBe(installed)
})

test('an installed program with a server that is too old is skipped and reported', async () => {
  const given = await search()
  const old = await program(join(given.root, 'bin', 'temporal'), '1.24.2')
  const cached = await program(join(given.cacheDir, 'temporal-cli-1.5.1', 'temporal'))
  expect(await findTemporalCli(given)).toBe(cached)
  expect(given.messages).toEqual([`skipping ${old}, which has Temporal server 1.24; 1.29 or newer is required`])
})

test('the second installer is used when the first fails, and the program is stored in the cache', async () => {
  const given = await search()
  const installers: TemporalCliSearch['installers'] = [
    () => Promise.reject(new Error('no network')),
    (work) => program(join(work, 'temporal')),
  ]
  const place = join(given.cacheDir, 'temporal-cli-1.5.1', 'temporal')
  expect(await findTemporalCli({ ...given, installers })).toBe(place)
  expect(given.messages).toEqual(['no network'])
  expect(await findTemporalCli(given)).toBe(place)
})

test('an installer that fails leaves nothing in the cache, and the error lists every alternative', async () => {
  const given = await search()
  const failing = async (work: string) => {
    await writeFile(join(work, 'temporal'), 'incomplete')
    throw new Error('cut off')
  }
  const failure = findTemporalCli({ ...given, installers: [failing] })
  await expect(failure).rejects.toThrow(
    /cut off[\s\S]*on the PATH[\s\S]*SVC_TEMPORAL_CLI[\s\S]*Go 1\.25[\s\S]*TEMPORAL_ADDRESS/,
  )
  expect(await readdir(join(given.cacheDir, 'temporal-cli-1.5.1'))).toEqual([])
})

test('an installed program that does not run is not stored', async () => {
  const given = await search()
  const broken = async (work: string) => {
    await writeFile(join(work, 'temporal'), 'not a program')
    return join(work, 'temporal')
  }
  await expect(findTemporalCli({ ...given, installers: [broken] })).rejects.toThrow(
    /the installed Temporal CLI does not run/,
  )
  expect(await readdir(join(given.cacheDir, 'temporal-cli-1.5.1'))).toEqual([])
})

test('the temporary folder of a killed process is removed', async () => {
  const given = await search()
  const folder = join(given.cacheDir, 'temporal-cli-1.5.1')
  await mkdir(join(folder, '.work-999999999'), { recursive: true })
  await findTemporalCli({ ...given, installers: [(work) => program(join(work, 'temporal'))] })
  expect(await readdir(folder)).toEqual(['temporal'])
})

test('the temporary folder of a running process is not removed', async () => {
  const given = await search()
  const folder = join(given.cacheDir, 'temporal-cli-1.5.1')
  const others = join(folder, `.work-${process.ppid}`)
  await mkdir(others, { recursive: true })
  const slowly = async (work: string) => {
    await sleep(50)
    return program(join(work, 'temporal'))
  }
  const place = await findTemporalCli({ ...given, installers: [slowly] })
  expect((await readdir(folder)).toSorted()).toEqual([`.work-${process.ppid}`, 'temporal'])
  expect(await readFile(place, 'utf8')).toContain('temporal version')
})
