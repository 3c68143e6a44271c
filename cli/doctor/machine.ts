/** This machine: the disk of the data folder, and the engine that forwards video. */
import { access, constants, statfs } from 'node:fs/promises'
import { delimiter, dirname } from 'node:path'
import type { Config } from '../../platform/config/config.ts'
import { findProgram } from '../../platform/find-program.ts'
import { findVideoObstacle } from '../ready-message.ts'
import { combine, type Finding, fail, ok, type Problem, warn } from './check.ts'
import type { Target } from './target.ts'

const mebibyte = 2 ** 20
/** Less makes a write of the database or of a log fail soon. */
const freeBytesMin = 256 * mebibyte
/** Less calls for space before long. */
const freeBytesWarn = 1024 * mebibyte
const freeInodesPartMin = 0.01
const freeInodesPartWarn = 0.05

export async function checkDisk({ stack }: Target): Promise<Finding> {
  const folder = await findExisting(stack.dataDir)
  const { bavail, bsize, ffree, files } = await statfs(folder)
  const freeBytes = bavail * bsize
  // Some file systems have no limit of files, and report none.
  const freeInodesPart = files === 0 ? 1 : ffree / files
  const size = `${Math.round(freeBytes / mebibyte)} MiB`
  const inodes = `${Math.round(freeInodesPart * 100)} % of the inodes`
  const isWritable = await isAccessible(folder, constants.W_OK)
  return combine(`${size} and ${inodes} are free at ${folder}`, [
    findShortage(`only ${size} are free at ${folder}`, freeBytes, freeBytesMin, freeBytesWarn),
    findShortage(`only ${inodes} are free at ${folder}`, freeInodesPart, freeInodesPartMin, freeInodesPartWarn),
    !isWritable && fail(`${folder} can't be written`, 'Change its owner or its mode, or set SVC_DATA_DIR.'),
  ])
}

function findShortage(detail: string, free: number, failBelow: number, warnBelow: number): Problem | undefined {
  if (free >= warnBelow) return undefined
  const problem = free < failBelow ? fail : warn
  return problem(detail, 'Free some space there, or set SVC_DATA_DIR to a folder on another disk.')
}

/** The folder, or the nearest one above it that exists. */
async function findExisting(folder: string): Promise<string> {
  const exists = await isAccessible(folder, constants.F_OK)
  return exists || dirname(folder) === folder ? folder : findExisting(dirname(folder))
}

const isAccessible = (folder: string, mode: number): Promise<boolean> =>
  access(folder, mode).then(
    () => true,
    () => false,
  )

export async function checkVideoEngine({ relay, regions }: Config): Promise<Finding> {
  if (!regions.some(({ provider }) => provider === 'local')) return ok('no region runs relays on this machine')
  const folders = relay.searchPath.split(delimiter)
  const obstacle = findVideoObstacle(relay.engine, folders, process.platform)
  if (obstacle === undefined && relay.engine === 'sls') return ok('the SLS server of SVC_RELAY_SLS_API_URL')
  if (obstacle === undefined)
    return findProgram('ffmpeg', folders) === undefined
      ? warn('ffmpeg is not on the PATH, so relays show the last picture instead of slates', 'Install ffmpeg.')
      : ok('srt-live-transmit is installed, and ffmpeg for slates')
  if (relay.engine === 'none') return warn(obstacle, 'Set SVC_RELAY_ENGINE=auto to forward video.')
  const [, install = ''] = obstacle.split(/:\s+/)
  return fail('srt-live-transmit is not on the PATH, so relays forward no video', `Install it: ${install}`)
}
