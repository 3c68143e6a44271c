import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import openapiTypescript from 'openapi-typescript'
import { expect, test } from 'vitest'

const read = (path: string) => readFile(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')

test('web/api-types.ts is generated from docs/openapi.json', async () => {
  const generated = await openapiTypescript(JSON.parse(await read('docs/openapi.json')), { immutableTypes: true })
  // Descriptions are comments, which do not change the types.
  const withoutComments = (text: string) => text.replaceAll(/^\s*\/\*\*.*?\*\/\n/gms, '')
  expect(withoutComments(await read('web/api-types.ts')), 'run `npm run generate`').toBe(withoutComments(generated))
})
