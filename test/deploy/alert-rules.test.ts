/**
 * The alert rules, their runbooks and their cases for promtool belong together. `test/system/alert-rules.test.ts` runs
 * the cases.
 */
import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string) => readFile(`${root}${path}`, 'utf8')
const listFiles = async (folder: string, ending: string) =>
  (await readdir(`${root}${folder}`)).filter((name) => name.endsWith(ending)).sort()

interface Rule {
  readonly alert?: string
  readonly record?: string
  readonly expr: string
  readonly labels?: { readonly severity?: string }
  readonly annotations?: Readonly<Record<string, string>>
}

interface CaseFile {
  readonly tests: readonly {
    readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly object[] }[]
  }[]
}

const folder = 'deploy/prometheus/rules'
const ruleFiles = await listFiles(folder, '.yml')
const rules = (
  await Promise.all(
    ruleFiles.map(async (name) => {
      const { groups } = parse(await read(`${folder}/${name}`)) as { groups: { rules: Rule[] }[] }
      return groups.flatMap((group) => group.rules)
    }),
  )
).flat()
const alerts = rules.filter((rule) => rule.alert !== undefined)
const alertNames = alerts.map((rule) => rule.alert ?? '').sort()
const cases = (
  await Promise.all(
    (
      await listFiles(`${folder}/tests`, '.test.yml')
    ).map(async (name) => (parse(await read(`${folder}/tests/${name}`)) as CaseFile).tests),
  )
)
  .flat()
  .flatMap((group) => group.alert_rule_test)

test('no two alerts have the same name', () => {
  expect(alertNames.length).toBeGreaterThan(30)
  expect(alertNames).toEqual([...new Set(alertNames)])
})

test('each alert has a case in which it fires and one in which it does not', () => {
  const namesWith = (fires: boolean) =>
    [
      ...new Set(cases.filter(({ exp_alerts }) => exp_alerts.length > 0 === fires).map(({ alertname }) => alertname)),
    ].sort()
  expect(namesWith(true)).toEqual(alertNames)
  expect(namesWith(false)).toEqual(alertNames)
})

test('each alert has a runbook with the four sections, and there is no other', async () => {
  const pages = await listFiles('docs/runbooks', '.md')
  expect(pages.map((name) => name.replace(/\.md$/, '')).filter((name) => name !== 'README')).toEqual(alertNames)
  const headings = ['What it means', 'How to check', 'How to fix', 'When to wake someone']
  for (const name of alertNames) {
    const text = await read(`docs/runbooks/${name}.md`)
    expect(text.startsWith(`# ${name}\n`), name).toBe(true)
    expect(
      [...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading),
      name,
    ).toEqual(headings)
    for (const [, target = ''] of text.matchAll(/\]\((\w+\.md)\)/g))
      expect(pages, `${name}: ${target}`).toContain(target)
  }
})

test('the list of runbooks has each alert with its severity', async () => {
  const listed = (await read('docs/runbooks/README.md')).matchAll(/^\| \[(\w+)\]\(\1\.md\) \| (\w+) \|/gm)
  const expected = alerts.map(({ alert, labels }) => [alert, labels?.severity])
  expect([...listed].map(([, name, severity]) => [name, severity]).sort()).toEqual(expected.sort())
})

describe.each(alerts.map((rule) => [rule.alert ?? '', rule] as const))('%s', (name, { labels, annotations }) => {
  test('has a severity, a summary, a description and the path of its runbook', () => {
    expect(['critical', 'warning']).toContain(labels?.severity)
    expect(Object.keys(annotations ?? {}).sort()).toEqual(['description', 'runbook_url', 'summary'])
    expect(annotations?.runbook_url).toBe(`docs/runbooks/${name}.md`)
  })
})

test('rules use only metrics that docs/operating.md describes, and figures that a rule records', async () => {
  const page = await read('docs/operating.md')
  const recorded = new Set(rules.map((rule) => rule.record))
  const names = rules.flatMap(({ expr }) => [...expr.matchAll(/\b(?:svc_\w+|(?:svc|region|worker):[\w:]+)/g)])
  const unknown = names
    .map(([name]) => name)
    .filter((name) => !recorded.has(name) && !page.includes(`\`${name.replace(/_(bucket|count)$/, '')}\``))
  expect(names.length).toBeGreaterThan(40)
  expect(unknown).toEqual([])
})

test('the runbooks use only commands and options of svc that exist', async () => {
  const sections = new Map(
    (await read('docs/cli.md')).split('\n### ').map((text) => [/^`svc ?([a-z -]*)`/.exec(text)?.[1], text] as const),
  )
  const problems: string[] = []
  let commands = 0
  for (const name of [...alertNames, 'README']) {
    const text = await read(`docs/runbooks/${name}.md`)
    for (const [, line = ''] of text.matchAll(/npm run svc -- ([^`#\n]+)/g)) {
      commands += 1
      const words = line.trim().split(/\s+/)
      const end = words.findIndex((word) => !/^[a-z-]+$/.test(word) || word.startsWith('-'))
      const section = sections.get((end < 0 ? words : words.slice(0, end)).join(' '))
      const options = words.filter((word) => word.startsWith('--'))
      if (section === undefined || options.some((option) => !section.includes(`${option} `)))
        problems.push(`${name}: svc ${line}`)
    }
  }
  expect(commands).toBeGreaterThan(30)
  expect(problems).toEqual([])
})
