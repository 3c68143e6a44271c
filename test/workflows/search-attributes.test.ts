/** The search attributes, as servers register them and workflows set them. */
import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { searchAttributes as registeredNames } from '../../platform/temporal.ts'
import * as searchAttributes from '../../workflows/search-attributes.ts'

const searchAttributeKeys = Object.values(searchAttributes)

describe('the search attributes of the workflows', () => {
  const names = searchAttributeKeys.map(({ name }) => name).toSorted()

  test('are those that the embedded server and the workers register', () => {
    expect([...registeredNames].toSorted()).toEqual(names)
  })

  test('are those that the script for a new namespace registers', async () => {
    const script = await readFile(new URL('../../deploy/temporal-namespace.sh', import.meta.url), 'utf8')
    const [, list = ''] = /^for name in (.+); do$/m.exec(script) ?? []
    expect(list.split(' ').toSorted()).toEqual(names)
  })

  test('are keywords, of which a server with SQLite or Postgres allows ten', () => {
    expect(searchAttributeKeys.every(({ type }) => type === 'KEYWORD')).toBe(true)
    expect(names.length).toBeLessThanOrEqual(10)
  })
})
