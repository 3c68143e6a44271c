import { appendFile, cp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { workflowFingerprint } from '../../../activities/worker/workflow-bundle.ts'
import { temporaryFolder } from '../../support/folders.ts'

const project = new URL('../../../', import.meta.url)

test.each(['domain/billing/plans.ts', 'workflows/relay-session.ts'])(
  'a change of %s changes the fingerprint of the workflow bundle',
  async (file) => {
    const folder = await temporaryFolder()
    for (const source of ['workflows', 'domain'])
      await cp(fileURLToPath(new URL(source, project)), join(folder, source), { recursive: true })
    const copy = pathToFileURL(`${folder}/`)
    const before = await workflowFingerprint(copy)
    expect(before).toBe(await workflowFingerprint(project))
    await appendFile(join(folder, file), '\n')
    expect(await workflowFingerprint(copy)).not.toBe(before)
  },
)
