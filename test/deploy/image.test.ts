/** The Dockerfile and what .dockerignore lets into the image. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

const { folders } = (await import(new URL('../../.dependency-cruiser.mjs', import.meta.url).href)) as {
  folders: readonly string[]
}
const included = [...read('.dockerignore').matchAll(/^!(.+)$/gm)].map(([, path]) => path)

test('every file that the Dockerfile copies is in the build context', () => {
  const copied = [...read('Dockerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths = '']) =>
    paths.split(' '),
  )
  expect(copied.length).toBeGreaterThan(2)
  expect(copied.filter((path) => path !== '.' && !included.includes(path))).toEqual([])
})

test('every folder with a program is in the build context, and no test', () => {
  const tests = ['bench', 'test']
  expect(folders.filter((folder) => included.includes(folder) === tests.includes(folder))).toEqual([])
})
