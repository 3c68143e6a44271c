/** The examples of regions in the docs. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { regions } from '../../../platform/config/regions.ts'

/** The JSON blocks of a page that configure regions. */
async function examplesIn(page: string): Promise<string[]> {
  const text = await readFile(new URL(`../../../${page}`, import.meta.url), 'utf8')
  return [...text.matchAll(/^ *```json\n(.*?)^ *```$/gms)]
    .map(([, block = '']) => block)
    .filter((block) => block.includes('"provider"'))
}

const examples = [...(await examplesIn('docs/relays.md')), ...(await examplesIn('docs/operating.md'))]

test('each example of SVC_REGIONS in the docs is a valid configuration', () => {
  const providers = examples.flatMap((text) => regions.parse(text).map(({ provider }) => provider))
  expect(providers).toEqual(expect.arrayContaining(['aws', 'hetzner']))
})
