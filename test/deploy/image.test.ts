/** The Dockerfile and what .dockerignore lets into the image. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { relayProgram } from '../../providers/relay/local-relays.ts'

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

test('the image contains the bundle of every program that runs in it, since nothing can be built there', () => {
  const places = ['package.json', 'Dockerfile', 'docker-compose.yml', 'cli/start.ts']
  const manifests = ['base/api', 'base/migrate', 'base/site', 'worker/deployment'].map(
    (name) => `deploy/kubernetes/${name}.yaml`,
  )
  const named = [...places, ...manifests].flatMap((path) =>
    [...read(path).matchAll(/(?:launch\.mjs"?,? "?|file: ')([a-z/-]+\.ts)/g)].map(([, file]) => file),
  )
  const built = [...read('platform/build-programs.mjs').matchAll(/^ {2}'(.+)',$/gm)].map(([, file]) => file)
  expect(new Set(named).size).toBeGreaterThan(7)
  // `npm run build` itself.
  const builders = ['activities/worker/build.ts', 'providers/relay/build-relay.ts']
  const needed = [...named, relayProgram, 'cli/svc/main.ts'].filter((file) => !builders.includes(file ?? ''))
  expect(needed.filter((file) => !built.includes(file))).toEqual([])
})
