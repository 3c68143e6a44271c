import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { composeVariables, fixedVariables } from '../../../platform/config/compose-variables.ts'
import { envExample } from '../../../platform/config/env-example.ts'
import { variableReference, variableSections } from '../../../platform/config/variable-reference.ts'
import { Variables } from '../../../platform/config/variables.ts'

test('.env.example is generated from the configuration: npm run generate', async () => {
  expect(await readFile(new URL('../../../.env.example', import.meta.url), 'utf8')).toBe(envExample())
})

test('every variable of the schema is described once, and in a section', () => {
  const names = Object.keys(Variables.shape).toSorted()
  expect(Object.keys(variableReference).toSorted()).toEqual(names)
  expect(
    Object.values(variableSections)
      .flatMap((section) => Object.keys(section))
      .toSorted(),
  ).toEqual(names)
})

test('a variable is either shown in .env.example or set by docker-compose.yml', () => {
  const shown = new Set([...envExample().matchAll(/^#?([A-Z_0-9]+)=/gm)].map(([, name]) => name))
  const names = [...Object.keys(Variables.shape), ...Object.keys(composeVariables)]
  expect(names.filter((name) => shown.has(name) === name in fixedVariables)).toEqual([])
})
