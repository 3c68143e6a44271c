/** Copies of the project that contain only what its bundles say that they were built from. */
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../../platform/bundle.mjs'
import { findProgramBundle } from '../../platform/program-bundle.mjs'
import { temporaryFolder } from './folders.ts'

const inputsOf = async (list: string): Promise<string[]> =>
  Object.keys((JSON.parse(await readFile(list, 'utf8')) as { inputs: object }).inputs)

/**
 * A copy with the sources of a bundle, which has to exist, and of a program, in a temporary folder.
 * @param bundle its name.
 * @param program the path of the program below the project's folder.
 */
export async function copyProject(bundle: string, program: string) {
  const entry = await findProgramBundle(join(root, program))
  const lists = [join(root, `dist/${bundle}.json`), `${dirname(entry).replace(/-\w+$/, '')}.json`]
  const inputs = (await Promise.all(lists.map(inputsOf))).flat()
  const folder = await temporaryFolder()
  for (const path of ['platform/launch.mjs', ...inputs.filter((input) => !input.startsWith('node_modules/'))]) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await cp(join(root, path), join(folder, path))
  }
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  /** Runs a program of the copy in an environment unlike that of the tests. */
  const launch = async (path: string) => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      // The packages are part of the copy.
      ['--preserve-symlinks', '--preserve-symlinks-main', join(folder, 'platform/launch.mjs'), join(folder, path)],
      { cwd: dirname(folder), env: { PATH: '/usr/bin:/bin', TZ: 'Asia/Tokyo', LANG: 'tr_TR.UTF-8' } },
    )
    return stdout.trim()
  }
  return { folder, launch }
}
