/** The programs of the service with a configuration that they refuse. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { nodeArguments } from '../../platform/launcher.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))

const run = (file: string, env: Readonly<Record<string, string>>) =>
  new Promise<{ code: number; problems: string[]; output: string }>((resolve) => {
    const options = { cwd: project, env: { PATH: '/usr/bin:/bin', ...env }, timeout: 60_000 }
    execFile(process.execPath, nodeArguments(file), options, (error, stdout, stderr) => {
      const problems = stderr.split('\n').flatMap((line) => (line.startsWith('  - ') ? [line.slice(4)] : []))
      resolve({ code: Number(error?.code ?? 0), problems, output: stdout + stderr })
    })
  })

const servers = { DATABASE_URL: 'postgres://svc:pw@127.0.0.1:1/svc', TEMPORAL_ADDRESS: '127.0.0.1:1' }

test.each(['api/server.ts', 'activities/worker/worker.ts'])(
  '%s refuses secrets that are missing, short or placeholders, and names all of them at once',
  async (file) => {
    const { code, problems, output } = await run(file, {
      ...servers,
      SVC_JWT_SECRET: 'swordfish',
      SVC_RELAY_AUTH_SECRET: 'change-me-change-me-change-me-change-me',
      OAUTH_ENCRYPTION_KEY: '0'.repeat(64),
      SVC_OPERATOR_PASSWORD: 'opensesame',
    })
    expect(code).toBe(1)
    expect(problems.toSorted()).toEqual([
      expect.stringMatching(/^OAUTH_ENCRYPTION_KEY is not 32 random bytes/),
      'SVC_BILLING_WEBHOOK_SECRET is not set',
      expect.stringMatching(/^SVC_JWT_SECRET is shorter than 32 bytes/),
      'SVC_OPERATOR_PASSWORD is shorter than 12 characters',
      expect.stringMatching(/^SVC_RELAY_AUTH_SECRET.* is a placeholder/),
    ])
    expect(output).not.toMatch(/swordfish|opensesame|change-me/)
  },
)

test('the site, which holds no secret, refuses its variables at once', async () => {
  const { code, problems } = await run('web/server.ts', { SVC_SITE_PORT: 'http', SVC_API_URL: 'ftp://api' })
  expect(code).toBe(1)
  expect(problems.map((line) => line.split(' ')[0]).toSorted()).toEqual(['SVC_API_URL', 'SVC_SITE_PORT'])
})
