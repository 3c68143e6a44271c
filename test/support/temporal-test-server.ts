/**
 * Temporal's test server, in which days pass in no time: the Java one, since the SDK's own build of it can't be had
 * everywhere. Got once by Maven, compared with the checksums kept here, and kept in the user's cache.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { access, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { readStackConfig } from '../../platform/config/stack.ts'

const run = promisify(execFile)

const kept = fileURLToPath(new URL('temporal-test-server/', import.meta.url))
const copyJars = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies'
const mavenMillisMax = 5 * 60_000

/** The path of a program that is the server. Rejects, with what helps, where it can't be had. */
export async function findTestServer(say: (text: string) => void): Promise<string> {
  if (!(await runs('java', '-version'))) throw new Error('there is no Java')
  const checksums = await readFile(join(kept, 'jars.sha256'), 'utf8')
  // By its content, so that another version is another folder.
  const folder = join(readStackConfig().cacheDir, `temporal-test-server-${sha256(checksums).slice(0, 16)}`)
  const program = join(folder, 'temporal-test-server')
  const isThere = await access(program).then(
    () => true,
    () => false,
  )
  if (!isThere) await obtain(folder, checksums, say)
  return program
}

async function obtain(folder: string, checksums: string, say: (text: string) => void): Promise<void> {
  if (!(await runs('mvn', '-version'))) throw new Error('there is no Maven')
  say('getting the time-skipping Temporal test server with Maven (33 MB, once, about half a minute)')
  // Made under a name of this process and then renamed, so that a run that is killed leaves no half of it.
  const work = `${folder}.work-${process.pid}`
  await rm(work, { recursive: true, force: true })
  await mkdir(work, { recursive: true })
  try {
    const jars = join(work, 'jars')
    const maven = [
      '-B',
      '-q',
      '-f',
      join(kept, 'pom.xml'),
      copyJars,
      `-DoutputDirectory=${jars}`,
      '-DincludeScope=runtime',
    ]
    await run('mvn', maven, { timeout: mavenMillisMax })
    await compare(jars, checksums)
    const script = `#!/bin/sh\nexec java -cp '${join(folder, 'jars')}/*' io.temporal.testserver.TestServer "$@"\n`
    await writeFile(join(work, 'temporal-test-server'), script, { mode: 0o755 })
    await rename(work, folder)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** Rejects when a jar is missing, is one more, or is not what it was. */
async function compare(jars: string, checksums: string): Promise<void> {
  const names = await readdir(jars)
  const found = await Promise.all(names.map(async (name) => `${sha256(await readFile(join(jars, name)))}  ${name}`))
  if (found.sort().join('\n') !== checksums.trim().split('\n').sort().join('\n'))
    throw new Error('what Maven got is not what test/support/temporal-test-server/jars.sha256 names')
}

const sha256 = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex')

const runs = (program: string, argument: string): Promise<boolean> =>
  run(program, [argument], { timeout: 30_000 }).then(
    () => true,
    () => false,
  )
