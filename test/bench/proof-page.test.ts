/** The pages of results, compared with the measured files. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { renderCapacity } from '../../bench/capacity.ts'
import { growthFigures } from '../../bench/growth-figures.ts'
import { mutationRows } from '../../bench/mutation-rows.ts'
import { type Result, renderPage, resultNames } from '../../bench/proof-page.ts'
import { pages, renderPlots, renderStored } from '../../bench/render-proof.ts'
import { failed, single, withRatio } from '../../bench/rows.ts'

const page = 'Text.\n\n<!-- result: bench -->\nold\n<!-- end -->\n\nWhy it is missed.\n'
const render = (result: Result) => renderPage(page, () => result)

test.each(pages)('the tables of %s are those of docs/proof/*.json', async (path) => {
  const stored = await readFile(path, 'utf8')
  expect(resultNames(stored)).not.toEqual([])
  expect(stored, 'npm run proof writes the page').toBe(await renderStored(path))
})

test('the figures in docs/images are those of docs/proof/growth.json', async () => {
  for (const [file, svg] of await renderPlots())
    expect(await readFile(file, 'utf8'), 'npm run proof draws it').toBe(svg)
})

test('a result without a file is not measured yet, and the text around it stays', () => {
  expect(render(undefined)).toBe(page.replace('old', '\nNot measured yet.\n'))
})

test('rendering twice gives the same page', () => {
  const once = render(undefined)
  expect(renderPage(once, () => undefined)).toBe(once)
})

test('a row shows its ratio, a missed target and why a measurement failed', () => {
  const figure = { name: 'start', what: 'start', unit: 'ms', target: 1.3, bound: 'at_most' } as const
  const rows = [withRatio(figure, { floor: 10, ours: 15, ratio: 1.5 }), failed(figure, new Error('a|b\nstack'))]
  const text = render(rows)
  expect(text).toMatch(/\| start \| 10 ms \| 15 ms +\| 1\.50 \(1\.50 to 1\.50\) +\| ≤ 1\.3 +\| \*\*missed\*\* \|/)
  expect(text).toMatch(/\| start \| – +\| failed: a\/b \|/)
})

test('rows of several sizes become one column a size', () => {
  const memory = { name: 'memory', what: 'memory', unit: 'MB' }
  const rows = [10, 1000].map((sessions) => ({ ...single(memory, sessions * 2), sessions }))
  expect(render(rows)).toMatch(/\| live sessions \| 10 +\| 1,000 \| unit \|\n.*\n\| memory +\| 20 +\| 2000 +\| MB +\|/)
})

test('a chaos run shows its seed, its counts and each violation', () => {
  const faults = { kill: { api: 3, worker: 2 } }
  const text = render({ seed: 7, seconds: 60, accepted: { start: 41 }, faults, violations: [{ usage: 'lost' }] })
  expect(text).toContain('Seed 7, 60 s. Violations: 1.\n\n- {"usage":"lost"}')
  expect(text).toContain('| start | 41 |')
  expect(text).toContain('| kill api | 3 |\n| kill worker | 2 |')
})

test('the mutation score counts time-outs as detected and leaves out what does not compile', () => {
  const statuses = ['Killed', 'Timeout', 'Survived', 'NoCoverage', 'CompileError', 'Ignored']
  const [all, file] = mutationRows({
    files: { 'domain/billing/plans.ts': { mutants: statuses.map((status) => ({ status })) } },
  })
  expect(all).toMatchObject({ name: 'mutation_score', ours: 50, target: 90, met: false })
  expect(file).toMatchObject({ name: 'mutation_score domain/billing/plans.ts', ours: 50, target: null })
})

test('the capacity model multiplies measured CPU times with the rates of a relay', () => {
  const grown = Object.entries(growthFigures).map(([name, figure]) => ({
    ...single({ name: `growth_${name}_1000`, ...figure }, name.startsWith('idle') ? 0 : 720),
    sessions: 1000,
  }))
  const bench = [withRatio({ name: 'relay_active_cpu', what: 'read', unit: 'µs' }, { floor: 1, ours: 300, ratio: 300 })]
  // 720 / 10 + 300 / 5 + 720 / 7200 = 132.1 µs a second, of 600,000 that a core has.
  expect(renderCapacity(grown, bench)).toMatch(/\| api +\| 720 +\| 300 +\| 720 +\| 0 +\| 130 +\| 4,500 +\|/)
  expect(renderCapacity(grown, bench)).toMatch(/\| cores: api +\| 0\.22 +\| 2\.2 +\| 22 +\| 220 +\|/)
  expect(renderCapacity(grown, [])).toBeUndefined()
})
