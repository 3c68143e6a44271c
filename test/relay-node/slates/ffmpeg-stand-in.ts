/** A script in the place of `ffmpeg`. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { givenFolder } from '../running.ts'

/** @param act what the script does after it has noted its arguments in a line. `$folder` is its own folder. */
export function givenFfmpeg(act: string) {
  const folder = givenFolder()
  const noted = join(folder, 'noted')
  writeFileSync(noted, '')
  mkdirSync(join(folder, 'bin'))
  const change = (next: string) =>
    writeFileSync(join(folder, 'bin', 'ffmpeg'), `#!/bin/sh\nfolder=${folder}\necho "$*" >> ${noted}\n${next}\n`, {
      mode: 0o755,
    })
  change(act)
  return {
    folder,
    searchPath: [join(folder, 'bin'), '/usr/bin', '/bin'].join(delimiter),
    change,
    /** The arguments of each start. */
    starts: () => readFileSync(noted, 'utf8').split('\n').slice(0, -1),
  }
}
