/** The licences of what the product contains: complete, current, and the same on every machine. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { thirdPartyNotices } from '../../platform/third-party-notices.ts'

const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')

test('THIRD_PARTY_NOTICES.md is generated from the lock file and the installed packages: npm run generate', async () => {
  expect(await read('THIRD_PARTY_NOTICES.md')).toBe(await thirdPartyNotices())
})

test('it names every package that is not for development only, with its version, those of other platforms included', async () => {
  const notices = await read('THIRD_PARTY_NOTICES.md')
  const { packages } = JSON.parse(await read('package-lock.json')) as {
    packages: Record<string, { version: string; dev?: boolean }>
  }
  const missing = Object.entries(packages)
    .filter(([path, { dev }]) => path && !dev)
    .map(([path, { version }]) => `- ${path.split('node_modules/').at(-1)} ${version} (`)
    .filter((label) => !notices.includes(label))
  expect(missing).toEqual([])
})

test('the product itself is not licensed to others', async () => {
  expect(JSON.parse(await read('package.json'))).toMatchObject({ license: 'UNLICENSED', private: true })
})
