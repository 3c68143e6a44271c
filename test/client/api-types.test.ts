/** The types of the API's client, compared with the document. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import openapiTypescript, { astToString } from 'openapi-typescript'
import { expect, test } from 'vitest'

const read = (path: string) => readFile(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')

test('client/api-types.ts is generated from docs/openapi.json', async () => {
  const generated = astToString(await openapiTypescript(JSON.parse(await read('docs/openapi.json'))))
  // Descriptions are comments, which do not change the types.
  const withoutComments = (text: string) => text.replaceAll(/^\s*\/\*\*.*?\*\/\n/gms, '').trim()
  expect(withoutComments(await read('client/api-types.ts')), 'run `npm run generate`').toBe(withoutComments(generated))
})
