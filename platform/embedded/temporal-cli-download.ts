/** A program that downloads a version of the Temporal CLI into a folder, with the Temporal SDK. */
import { TestWorkflowEnvironment } from '@temporalio/testing'

const [downloadDir, version] = process.argv.slice(2)
if (!downloadDir || !version) throw new Error('usage: temporal-cli-download.ts <folder> <version>')

// The SDK downloads the CLI only when it starts a server.
try {
  const environment = await TestWorkflowEnvironment.createLocal({
    server: { executable: { type: 'cached-download', downloadDir, version } },
  })
  await environment.teardown()
} catch (error) {
  process.stderr.write(`${(error as Error).message.split(': ').at(-1)}\n`)
  process.exitCode = 1
}
