/** The stored programs of relays: which builds are kept. */
import { expect, test } from 'vitest'
import { listRelayPrograms, storeRelayProgram } from '../../../db/fleet/relay-programs.ts'
import { startApi } from '../../support/api.ts'

const { sql } = await startApi()

const program = (name: string) => ({ fileName: `relay-node-${name}.mjs`, code: Buffer.from(`// ${name}\n`) })
const names = async () => (await listRelayPrograms(sql)).map(({ fileName }) => fileName).toSorted()
const named = (...some: string[]) => some.map((name) => program(name).fileName)

test('the programs of the five builds whose workers started last are kept, with a build that was gone back to', async () => {
  for (const name of ['a', 'b', 'c', 'd', 'e']) await storeRelayProgram(sql, program(name))
  expect(await names()).toEqual(named('a', 'b', 'c', 'd', 'e'))
  await storeRelayProgram(sql, program('a'))
  await storeRelayProgram(sql, program('f'))
  expect(await names()).toEqual(named('a', 'c', 'd', 'e', 'f'))
  // It was deleted, and its worker starts again.
  await storeRelayProgram(sql, program('b'))
  expect(await names()).toEqual(named('a', 'b', 'd', 'e', 'f'))
  expect(await listRelayPrograms(sql)).toContainEqual(program('b'))
})

test('workers of one build that start at the same time store its program once', async () => {
  await Promise.all(Array.from({ length: 8 }, () => storeRelayProgram(sql, program('at once'))))
  expect((await names()).filter((name) => name.includes('at once'))).toHaveLength(1)
})

test('an empty program, or one above 4 MiB, is refused', async () => {
  for (const bytes of [0, 4 * 1024 * 1024 + 1])
    await expect(storeRelayProgram(sql, { fileName: 'wrong.mjs', code: Buffer.alloc(bytes) })).rejects.toThrow(
      'relay_programs_code_size',
    )
})
