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

async function search(): Promise<TemporalCliSearch & { said: string[]; root: string }> {
  const root = await temporaryFolder()
  const said: string[] = []
  return {
    explicit: undefined,
    searchPath: [join(root, 'bin')],
    dataDir: join(root, 'data'),
    cacheDir: join(root, 'cache'),
    progress: (text) => said.push(text),
    ways: [],
    said,
    root,
  }
}

test('the program that the operator names comes before all others', async () => {
  const given = await search()
  await program(join(given.root, 'bin', 'temporal'))
  const named = await program(join(given.root, 'mine'))
  expect(await findTemporalCli({ ...given, explicit: named })).toBe(named)
})

test('a named program that does not run is an error, never silently replaced', async () => {
  const given = await search()
  await program(join(given.root, 'bin', 'temporal'))
  await expect(findTemporalCli({ ...given, explicit: '/nowhere/temporal' })).rejects.toThrow(
    /^SVC_TEMPORAL_CLI names \/nowhere\/temporal, which does not run/,
  )
})

test('the PATH comes before the data folder, and that before the cache', async () => {
  const given = await search()
  const cached = await program(join(given.cacheDir, 'temporal-cli-1.5.1', 'temporal'))
  expect(await findTemporalCli(given)).toBe(cached)
  const kept = await program(join(given.dataDir, 'temporal-cli-1.5.1', 'temporal'))
  expect(await findTemporalCli(given)).toBe(kept)
  const installed = await program(join(given.root, 'bin', 'temporal'))
  expect(await findTemporalCli(given)).toBe(installed)
})

test('an installed program with too old a server is passed over and named', async () => {
  const given = await search()
  const old = await program(join(given.root, 'bin', 'temporal'), '1.24.2')
  const cached = await program(join(given.cacheDir, 'temporal-cli-1.5.1', 'temporal'))
  expect(await findTemporalCli(given)).toBe(cached)
  expect(given.said).toEqual([`passing over ${old}, which holds Temporal server 1.24; 1.29 or newer is needed`])
})

test('what the first way can not get the second does, and it is kept in the cache', async () => {
  const given = await search()
  const ways: TemporalCliSearch['ways'] = [
    () => Promise.reject(new Error('no network')),
    (work) => program(join(work, 'temporal')),
  ]
  const place = join(given.cacheDir, 'temporal-cli-1.5.1', 'temporal')
  expect(await findTemporalCli({ ...given, ways })).toBe(place)
  expect(given.said).toEqual(['no network'])
  expect(await findTemporalCli(given)).toBe(place)
})

test('a way that breaks off leaves nothing in the cache, and the error names every way out', async () => {
  const given = await search()
  const half = async (work: string) => {
    await writeFile(join(work, 'temporal'), 'half')
    throw new Error('cut off')
  }
  const failure = findTemporalCli({ ...given, ways: [half] })
  await expect(failure).rejects.toThrow(
    /cut off[\s\S]*on the PATH[\s\S]*SVC_TEMPORAL_CLI[\s\S]*Go 1\.25[\s\S]*TEMPORAL_ADDRESS/,
  )
  expect(await readdir(join(given.cacheDir, 'temporal-cli-1.5.1'))).toEqual([])
})

test('a program that was obtained but does not run is not kept', async () => {
  const given = await search()
  const broken = async (work: string) => {
    await writeFile(join(work, 'temporal'), 'not a program')
    return join(work, 'temporal')
  }
  await expect(findTemporalCli({ ...given, ways: [broken] })).rejects.toThrow(/just obtained does not run/)
  expect(await readdir(join(given.cacheDir, 'temporal-cli-1.5.1'))).toEqual([])
})

test('what a killed process left half done is cleared away', async () => {
  const given = await search()
  const folder = join(given.cacheDir, 'temporal-cli-1.5.1')
  await mkdir(join(folder, '.work-999999999'), { recursive: true })
  await findTemporalCli({ ...given, ways: [(work) => program(join(work, 'temporal'))] })
  expect(await readdir(folder)).toEqual(['temporal'])
})

test('another process that is just now getting it is not disturbed', async () => {
  const given = await search()
  const folder = join(given.cacheDir, 'temporal-cli-1.5.1')
  const others = join(folder, `.work-${process.ppid}`)
  await mkdir(others, { recursive: true })
  const slowly = async (work: string) => {
    await sleep(50)
    return program(join(work, 'temporal'))
  }
  const place = await findTemporalCli({ ...given, ways: [slowly] })
  expect((await readdir(folder)).toSorted()).toEqual([`.work-${process.ppid}`, 'temporal'])
  expect(await readFile(place, 'utf8')).toContain('temporal version')
})
