/**
 * Installs Temporal's time-skipping test server. Uses the Java server, because the SDK's native build cannot be
 * downloaded from every network. Maven downloads it once; checksums are verified, and the result is stored in the
 * user's cache folder.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { access, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { readStackConfig } from '../../platform/config/stack.ts'

const run = promisify(execFile)

const definition = fileURLToPath(new URL('temporal-test-server/', import.meta.url))
const copyJars = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies'
const mavenMillisMax = 5 * 60_000

/** Installs the server if necessary, and returns the path of its start script. */
export async function findTestServer(say: (text: string) => void): Promise<string> {
  if (!(await runs('java', '-version'))) throw new Error('Java is not installed')
  const checksums = await readFile(join(definition, 'jars.sha256'), 'utf8')
  // Each version has its own folder.
  const folder = join(readStackConfig().cacheDir, `temporal-test-server-${sha256(checksums).slice(0, 16)}`)
  const program = join(folder, 'temporal-test-server')
  const isThere = await access(program).then(
    () => true,
    () => false,
  )
  if (!isThere) await install(folder, checksums, say)
  return program
}

async function install(folder: string, checksums: string, say: (text: string) => void): Promise<void> {
  if (!(await runs('mvn', '-version'))) throw new Error('Maven is not installed')
  say('downloading the time-skipping Temporal test server with Maven (33 MB, once, about 30 s)')
  // Created under a temporary name and renamed, so that a killed run leaves no incomplete folder.
  const work = `${folder}.work-${process.pid}`
  await rm(work, { recursive: true, force: true })
  await mkdir(work, { recursive: true })
  try {
    const jars = join(work, 'jars')
    const maven = [
      '-B',
      '-q',
      '-f',
      join(definition, 'pom.xml'),
      copyJars,
      `-DoutputDirectory=${jars}`,
      '-DincludeScope=runtime',
    ]
    await run('mvn', maven, { timeout: mavenMillisMax })
    await verifyChecksums(jars, checksums)
    const script = `#!/bin/sh\nexec java -cp '${join(folder, 'jars')}/*' io.temporal.testserver.TestServer "$@"\n`
    await writeFile(join(work, 'temporal-test-server'), script, { mode: 0o755 })
    await rename(work, folder)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** Rejects when a jar is missing, unexpected or changed. */
async function verifyChecksums(jars: string, checksums: string): Promise<void> {
  const names = await readdir(jars)
  const found = await Promise.all(names.map(async (name) => `${sha256(await readFile(join(jars, name)))}  ${name}`))
  if (found.sort().join('\n') !== checksums.trim().split('\n').sort().join('\n'))
    throw new Error('the downloaded jars do not match test/support/temporal-test-server/jars.sha256')
}

const sha256 = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex')

const runs = (program: string, argument: string): Promise<boolean> =>
  run(program, [argument], { timeout: 30_000 }).then(
    () => true,
    () => false,
  )
