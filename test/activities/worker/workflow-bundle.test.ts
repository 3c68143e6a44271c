/** The workflow bundle of a worker: which sources it is made of, and when it is built again. */
import { readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { workflowBundlePath } from '../../../activities/worker/workflow-bundle.ts'
import { createLog } from '../../../platform/log.ts'
import { copyProject } from '../../support/project-copies.ts'

/** A program that builds one of the bundles that `build.ts` builds. */
const program = `import { createLog } from '../../platform/log.ts'
import { workflowBundlePath } from './workflow-bundle.ts'
process.stdout.write(await workflowBundlePath(createLog('build', 'fatal')))
`

test('the files that the bundle names as its sources give the same bundle, and so the same build id, in another folder', async () => {
  const bundle = await workflowBundlePath(createLog('test', 'fatal'))
  const { folder, launch } = await copyProject('workflow-bundle-registry', 'activities/worker/build.ts')
  await writeFile(join(folder, 'activities/worker/build-one.ts'), program)
  const copy = await launch('activities/worker/build-one.ts')
  expect(copy).toBe(join(folder, 'dist', basename(bundle)))
  expect((await readFile(copy)).equals(await readFile(bundle))).toBe(true)

  const file = join(folder, 'domain/billing/plans.ts')
  await writeFile(file, `${await readFile(file, 'utf8')}\nexport const added = 1\n`)
  const changed = await launch('activities/worker/build-one.ts')
  expect(changed).not.toBe(copy)
  expect(await readFile(changed, 'utf8')).toContain('added')
})
