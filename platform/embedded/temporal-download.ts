/** Run as a process: lets the Temporal SDK download the CLI of a version into a folder. `<folder> <version>` */
import { TestWorkflowEnvironment } from '@temporalio/testing'

const [downloadDir, version] = process.argv.slice(2)
if (!downloadDir || !version) throw new Error('usage: temporal-download.ts <folder> <version>')

// Starting a server is the SDK's only way to have it downloaded.
try {
  const environment = await TestWorkflowEnvironment.createLocal({
    server: { executable: { type: 'cached-download', downloadDir, version } },
  })
  await environment.teardown()
} catch (error) {
  process.stderr.write(`${(error as Error).message.split(': ').at(-1)}\n`)
  process.exitCode = 1
}
