/** The programs with which the demo publishes, and the reason when there is none. */
import { chmod, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findObstacle } from '../../cli/demo-stream.ts'
import { findMediaPrograms } from '../../cli/media-programs.ts'
import { temporaryFolder } from '../support/folders.ts'

async function folderWith(programs: Readonly<Record<string, string>>): Promise<string> {
  const folder = await temporaryFolder()
  for (const [name, script] of Object.entries(programs)) {
    await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`)
    await chmod(join(folder, name), 0o755)
  }
  return folder
}

const obstacleIn = async (folder: string, engine?: string) =>
  findObstacle(engine, await findMediaPrograms([folder]), 'linux')

test('a test pattern can be published with either program', async () => {
  expect(await obstacleIn(await folderWith({ 'srt-live-transmit': '' }))).toBeUndefined()
  expect(await obstacleIn(await folderWith({ ffmpeg: 'echo "  srt"' }))).toBeUndefined()
})

test.each([
  ['no program', {}],
  ['an ffmpeg without SRT', { ffmpeg: 'echo "  srtp"' }],
  ['an ffmpeg that does not run', { ffmpeg: 'exit 1' }],
])('with %s the reason names the command that installs the programs', async (_, programs) => {
  expect(await obstacleIn(await folderWith(programs))).toMatch(/sudo apt-get install srt-tools ffmpeg$/)
})

test('a relay without an engine is named as the reason', async () => {
  const folder = await folderWith({ 'srt-live-transmit': '' })
  expect(await obstacleIn(folder, 'none')).toMatch(/the relay found no srt-live-transmit .* install srt-tools/)
})

test('a file that is not executable is no program', async () => {
  const folder = await folderWith({ 'srt-live-transmit': '' })
  await chmod(join(folder, 'srt-live-transmit'), 0o644)
  const linked = await temporaryFolder()
  await symlink(join(folder, 'srt-live-transmit'), join(linked, 'srt-live-transmit'))
  expect((await findMediaPrograms([folder, linked, ''])).liveTransmit).toBeUndefined()
})
