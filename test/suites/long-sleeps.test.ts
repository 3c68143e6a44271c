/** The rule that no test waits for time, and its exceptions. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { exceptions, findLongSleeps } from './long-sleeps.ts'

const folder = fileURLToPath(new URL('../..', import.meta.url))
/** They judge real time, or take pictures of it. */
const otherFolders = /^test\/(system|attacks|chaos|screenshots|suites)\//

const files = readdirSync(join(folder, 'test'), { recursive: true, encoding: 'utf8' })
  .map((path) => join('test', path))
  .filter((path) => /\.tsx?$/.test(path) && !otherFolders.test(path))

test('a pause is found by its length, however the call is written', () => {
  const source = `
    await sleep(101)
    await sleep(1_500)
    await sleep(delayMillis, undefined, { signal })
    await new Promise((done) => setTimeout(done, 2_000))
    setTimeout(() => { call(a, b) }, pause * 2)
    await sleep(100)
    setTimeout(done, 20)`
  expect(findLongSleeps(source)).toEqual([
    'sleep(101)',
    'sleep(1_500)',
    'sleep(delayMillis, undefined, { signal })',
    'setTimeout(done, 2_000)',
    'setTimeout(() => { call(a, b) }, pause * 2)',
  ])
})

test('no test waits for more than a tenth of a second, apart from the listed exceptions', () => {
  const found = files
    .filter((file) => !(file in exceptions))
    .flatMap((file) => findLongSleeps(readFileSync(join(folder, file), 'utf8')).map((call) => `${file}: ${call}`))
  expect(found).toEqual([])
})

test('each exception names a file that needs it', () => {
  const isNeeded = (file: string) => findLongSleeps(readFileSync(join(folder, file), 'utf8')).length > 0
  expect(Object.keys(exceptions).filter((file) => !files.includes(file) || !isNeeded(file))).toEqual([])
})
