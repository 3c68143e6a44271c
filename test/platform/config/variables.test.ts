/** The variables, compared with the files that are generated from them. */
import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { composeVariables } from '../../../platform/config/compose-variables.ts'
import { readSiteConfig } from '../../../platform/config/site.ts'
import { localVariables } from '../../../platform/config/stack.ts'
import type { VariableDescription } from '../../../platform/config/variable.ts'
import { variableDocuments } from '../../../platform/config/variable-documents.ts'
import { adviseVariable } from '../../../platform/config/variable-texts.ts'
import { variables } from '../../../platform/config/variables.ts'

const root = new URL('../../../', import.meta.url)
const read = (path: string) => readFile(new URL(path, root), 'utf8')
const described = { ...composeVariables, ...localVariables, ...variables } as Readonly<
  Record<string, VariableDescription>
>

test.each(variableDocuments)('$path lists the variables as they are declared: npm run generate', async (document) => {
  const text = await read(document.path)
  expect(document.render(text)).toBe(text)
})

test('docs/operating.md describes every variable, and so does the doctor', async () => {
  const page = await read('docs/operating.md')
  const names = Object.keys(described)
  expect(names.filter((name) => !page.includes(`\`${name}\``) || !adviseVariable(name)?.includes(name))).toEqual([])
})

test('the advice of the doctor has the readers, the range, the default and no marks of Markdown', () => {
  expect(adviseVariable('SVC_JWT_TTL_SECONDS')).toBe(
    'SVC_JWT_TTL_SECONDS (read by api): How long an access token is valid. From 600 to 900 s. By default: 720 s.',
  )
  expect(adviseVariable('SVC_RELAY_ENGINE')).toContain('where it is installed (docs/relays.md). By default: auto.')
  expect(Object.keys(described).filter((name) => /`|\*\*|\]\(/.test(adviseVariable(name) ?? ''))).toEqual([])
})

test('the site reads the variables that name it as a reader', () => {
  const names = new Set<string>()
  readSiteConfig(new Proxy({}, { get: (_, name) => void names.add(String(name)) }))
  const expected = Object.entries(described).filter(([, { readers }]) => readers.includes('site'))
  expect([...names].filter((name) => !name.endsWith('_FILE')).toSorted()).toEqual(
    expected.map(([name]) => name).toSorted(),
  )
})

test('deploy/kubernetes sets variables that exist', async () => {
  const files = (await readdir(new URL('deploy/kubernetes', root), { recursive: true })).filter((file) =>
    /\.yaml$/.test(file),
  )
  const texts = await Promise.all(files.map((file) => read(`deploy/kubernetes/${file}`)))
  const names = texts.flatMap((text) =>
    [...text.matchAll(/- ([A-Z_0-9]+)=|name: (?!HOME)([A-Z_0-9]+), value/g)].map(
      ([, literal, variable]) => literal ?? variable ?? '',
    ),
  )
  expect(names.length).toBeGreaterThan(20)
  expect(names.filter((name) => !(name in described || name.replace(/_FILE$/, '') in described))).toEqual([])
})
