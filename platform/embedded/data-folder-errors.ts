/** Explains why `npm start` cannot use its data folder, and how to fix it. */
import { stat, statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/** A segment of the Postgres write-ahead log alone has 16 MiB. */
const freeBytesMin = 64 * 1024 * 1024
const mebibyte = 1024 * 1024

const anotherFolder = 'or set SVC_DATA_DIR to another folder'

/**
 * Returns an error with an explanation when the folder is the cause: it is a file, is not writable, belongs to another
 * user, or its disk is full. Otherwise returns the error itself.
 */
export async function explainFolderError(error: unknown, folder: string): Promise<Error> {
  const { message } = error as Error
  const explanation =
    (await explainAccess(error as NodeJS.ErrnoException, folder)) ?? (await explainSpace(message, folder))
  return explanation === undefined ? (error as Error) : new Error(explanation, { cause: error })
}

async function explainAccess({ code, path }: NodeJS.ErrnoException, folder: string): Promise<string | undefined> {
  // The path is the folder, a file in it, or a parent folder.
  const isAbout = path !== undefined && (resolve(path).startsWith(folder) || folder.startsWith(`${resolve(path)}/`))
  if (!isAbout) return undefined
  if (code === 'EEXIST' || code === 'ENOTDIR') {
    const file = (await firstNonFolder(folder)) ?? path
    return `${file} is not a folder, so the data folder ${folder} can't be created. Move it away, ${anotherFolder}.`
  }
  if (code === 'EROFS') return `${path} is on a read-only file system. Make it writable, ${anotherFolder}.`
  if (code !== 'EACCES' && code !== 'EPERM') return undefined
  const [uid, owner] = [process.geteuid?.(), (await nearest(folder))?.uid]
  const belongs = owner === undefined || owner === uid ? '' : `: ${folder} belongs to another user (uid ${owner})`
  return `${path} can't be written by this user (uid ${uid})${belongs}. Start as its owner, change its owner, ${anotherFolder}.`
}

async function explainSpace(message: string, folder: string): Promise<string | undefined> {
  const free = await freeBytes(folder)
  const isFull = /no space left|quota exceeded|disk is full|file too large|SIGXFSZ/i.test(message)
  if (!isFull && (free === undefined || free > freeBytesMin)) return undefined
  const left = free === undefined ? '' : ` (${Math.floor(free / mebibyte)} MB left)`
  return (
    `${message}\n\nThere is not enough disk space in ${folder}${left}, or in /var/lib when root starts below a home that is closed ` +
    `to other users. The first start writes about 100 MB. Free some space there, ${anotherFolder}, and start again: nothing has ` +
    'to be removed by hand.'
  )
}

const freeBytes = async (folder: string): Promise<number | undefined> => {
  const found = await statfs(folder).catch(() => undefined)
  return found && found.bavail * found.bsize
}

/** The folder itself, or its nearest parent that exists. */
async function nearest(path: string): Promise<{ uid: number } | undefined> {
  const found = await stat(path).catch(() => undefined)
  return found ?? (dirname(path) === path ? undefined : nearest(dirname(path)))
}

async function firstNonFolder(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined)
  if (found) return found.isDirectory() ? undefined : path
  return dirname(path) === path ? undefined : firstNonFolder(dirname(path))
}
