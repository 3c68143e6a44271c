import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker } from '@temporalio/worker'
import { describe, expect, test } from 'vitest'
import { workflowBundlePath } from '../../activities/worker/workflow-bundle.ts'
import { createLog } from '../../platform/log.ts'
import { installRuntimeOnce } from '../support/relays.ts'

installRuntimeOnce()
const directory = fileURLToPath(new URL('../histories/subscriptions/', import.meta.url))
const names = readdirSync(directory).sort()
const recorded = new Map(names.map((name) => [name, readFileSync(`${directory}/${name}`, 'utf8')]))

/** The names of those that can't be replayed. */
async function replay(texts: ReadonlyMap<string, string>): Promise<string[]> {
  const workflowBundle = { codePath: await workflowBundlePath(createLog('test', 'fatal')) }
  const histories = [...texts].map(([workflowId, text]) => ({ workflowId, history: JSON.parse(text) }))
  const failed: string[] = []
  for await (const { workflowId, error } of Worker.runReplayHistories({ workflowBundle }, histories))
    if (error) failed.push(workflowId)
  return failed
}

describe('recorded histories of subscriptions', () => {
  test('are there for each turn that one can take', () => {
    expect(names).toEqual([
      'activated.json',
      'failed-and-downgraded.json',
      'fewer-addons.json',
      'grant-ended.json',
      'handed-on.json',
      'recovered.json',
    ])
  })

  test('replay against the code as it is', async () => {
    expect(await replay(recorded)).toEqual([])
  })

  test('would be noticed if they did not', async () => {
    const name = 'failed-and-downgraded.json'
    const altered = recorded.get(name)?.replaceAll('endRelays', 'somethingElse') ?? ''
    expect(await replay(new Map([[name, altered]]))).toEqual([name])
  })
})
